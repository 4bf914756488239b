package storagemigration

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/managedfields"
	"github.com/anykind/anykind/unstructured"
)

// moveEntries returns metadata.managedFields with the entries of absent and unserved versions moved to the storage version. isMoved
// reports a difference. Without a remaining entry, the list has an empty entry.
func (d *definition) moveEntries(obj *unstructured.Object) (list []any, isMoved bool, err error) {
	entries, err := managedfields.Read(obj.Object)
	if err != nil {
		return nil, false, err
	}
	served := d.served()
	var moved []managedfields.Entry
	for _, e := range entries {
		version, err := schema.ParseGroupVersion(e.APIVersion)
		if err == nil && version.Group == d.Spec.Group && slices.Contains(served, version.Version) {
			moved = addEntry(moved, e)
			continue
		}
		isMoved = true
		e.APIVersion = schema.GroupVersion{Group: d.Spec.Group, Version: d.storage()}.String()
		if d.Spec.Conversion.Strategy == "Webhook" {
			e.Fields = metadataOf(e.Fields)
		}
		if len(e.Fields) > 0 {
			moved = addEntry(moved, e)
		}
	}
	if len(moved) == 0 && isMoved {
		return []any{map[string]any{}}, true, nil // the server ignores an empty list; an empty entry removes all
	}
	return managedfields.Encode(moved), isMoved, nil
}

// metadataOf returns the part of fields below metadata. Its names are equal in all versions.
func metadataOf(fields map[string]any) map[string]any {
	metadata, isMap := fields["f:metadata"]
	if !isMap {
		return nil
	}
	return map[string]any{"f:metadata": metadata}
}

// addEntry adds e to entries. The server keeps a single entry of equal manager, operation, subresource and, for updates, version: of
// duplicates it would drop the fields of the first one.
func addEntry(entries []managedfields.Entry, e managedfields.Entry) []managedfields.Entry {
	for i, existing := range entries {
		isSame := existing.Manager == e.Manager && existing.Operation == e.Operation && existing.Subresource == e.Subresource &&
			(e.Operation == managedfields.Apply || existing.APIVersion == e.APIVersion)
		if isSame {
			entries[i].Fields = managedfields.Union(existing.Fields, e.Fields)
			entries[i].Time = max(existing.Time, e.Time)
			return entries
		}
	}
	return append(entries, e)
}
