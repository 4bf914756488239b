package kinds

import (
	"fmt"
	"strings"
	"sync"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/structural"
)

var (
	definitionVerbs  = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	terminatingVerbs = []string{"delete", "deletecollection", "get", "list", "watch"}
	subresourceVerbs = []string{"get", "patch", "update"}
)

// Priorities of the APIServices of CustomResourceDefinitions.
const (
	definitionGroupPriority   = 1000
	definitionVersionPriority = 100
)

// resourcesOf returns the served versions of a CustomResourceDefinition.
func resourcesOf(definition map[string]any, rules structural.RuleCompiler) ([]*Resource, error) {
	name := nested.String(definition, "metadata", "name")
	names := nested.Map(definition, "spec", "names")
	base := Resource{
		Group: nested.String(definition, "spec", "group"), Kind: nested.String(names, "kind"), ListKind: nested.String(names, "listKind"), Plural: nested.String(names, "plural"),
		Singular: nested.String(names, "singular"), Namespaced: nested.String(definition, "spec", "scope") == "Namespaced",
		ShortNames: nested.Strings(names, "shortNames"), Categories: nested.Strings(names, "categories"), Verbs: definitionVerbs, Definition: definition,
	}
	if base.Group == "" || base.Kind == "" || base.Plural == "" || name != base.Plural+"."+base.Group {
		return nil, fmt.Errorf("define %s: spec.group, spec.names.kind or spec.names.plural is missing, or the name is not PLURAL.GROUP", name)
	}
	if base.ListKind == "" {
		base.ListKind = base.Kind + "List"
	}
	if base.Singular == "" {
		base.Singular = strings.ToLower(base.Kind)
	}
	if nested.HasCondition(definition, "Terminating") {
		base.Verbs = terminatingVerbs
	}
	versions := nested.Maps(definition, "spec", "versions")
	for _, v := range versions {
		if nested.Bool(v, "storage") {
			base.StorageVersion = nested.String(v, "name")
		}
	}
	if base.StorageVersion == "" {
		return nil, fmt.Errorf("define %s: no version has storage: true", name)
	}
	base.storageVersionHash = storageVersionHash(base.Group, base.StorageVersion, base.Kind)
	base.openapi = definitionOpenAPI(definition)
	var resources []*Resource
	for _, v := range versions {
		if !nested.Bool(v, "served") {
			continue
		}
		resource := base
		resource.Version = nested.String(v, "name")
		resource.setVersion(v, rules)
		resources = append(resources, &resource)
	}
	return resources, nil
}

// setVersion sets the fields of an entry of spec.versions.
func (r *Resource) setVersion(v map[string]any, rules structural.RuleCompiler) {
	if schema := nested.Map(v, "schema", "openAPIV3Schema"); schema != nil {
		r.schema = sync.OnceValue(func() *structural.Schema { return structural.Compile(schema, rules) })
	}
	r.Subresources = map[string]Subresource{}
	if nested.Map(v, "subresources", "status") != nil {
		r.Subresources["status"] = Subresource{Name: "status", Group: r.Group, Version: r.Version, Kind: r.Kind, Verbs: subresourceVerbs}
		r.subresourceNames = append(r.subresourceNames, "status")
	}
	if nested.Map(v, "subresources", "scale") != nil {
		scale := nested.Map(v, "subresources", "scale")
		r.Subresources["scale"] = Subresource{
			Name: "scale", Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: subresourceVerbs,
			Scale: &ScalePaths{nested.String(scale, "specReplicasPath"), nested.String(scale, "statusReplicasPath"), nested.String(scale, "labelSelectorPath")},
		}
		r.subresourceNames = append(r.subresourceNames, "scale")
	}
	for _, c := range nested.Maps(v, "additionalPrinterColumns") {
		priority := nested.Int64(c, "priority")
		r.columns = append(r.columns, Column{
			Name: nested.String(c, "name"), Type: nested.String(c, "type"), Format: nested.String(c, "format"), Description: nested.String(c, "description"),
			Priority: int32(priority), JSONPath: nested.String(c, "jsonPath"),
		})
	}
	if len(r.columns) == 0 {
		r.columns = []Column{{Name: "Age", Type: "date", Description: ageDescription, JSONPath: ".metadata.creationTimestamp"}}
	}
	for _, field := range nested.Maps(v, "selectableFields") {
		r.SelectableFields = append(r.SelectableFields, strings.TrimPrefix(nested.String(field, "jsonPath"), "."))
	}
}

// ageDescription is the column description of a CRD without printer columns, copied from ObjectMeta.creationTimestamp.
const ageDescription = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not " +
	"guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented " +
	"in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: " +
	"https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
