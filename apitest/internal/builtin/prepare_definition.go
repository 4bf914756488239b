package builtin

import (
	"slices"

	"github.com/anykind/anykind/apitest/internal/nested"
)

func createDefinition(definition object) {
	definition["status"] = object{"acceptedNames": object{"plural": "", "kind": ""}, "conditions": nil, "storedVersions": []any{}}
	addStoredVersion(definition)
}

func updateDefinition(definition, _ object) { addStoredVersion(definition) }

// addStoredVersion adds the storage version to status.storedVersions. Versions leave the list by an update of the status only.
func addStoredVersion(definition object) {
	status := nested.EnsureMap(definition, "status")
	stored := slices.Clone(nested.Slice(status, "storedVersions"))
	for _, version := range nested.Maps(definition, "spec", "versions") {
		if nested.Bool(version, "storage") && !slices.Contains(stored, version["name"]) {
			stored = append(stored, version["name"])
			break
		}
	}
	status["storedVersions"] = stored
}
