package kinds

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	d := document(definition)
	name := d.text("metadata", "name")
	names := d.at("spec", "names")
	base := Resource{
		Group: d.text("spec", "group"), Kind: names.text("kind"), ListKind: names.text("listKind"), Plural: names.text("plural"),
		Singular: names.text("singular"), Namespaced: d.text("spec", "scope") == "Namespaced",
		ShortNames: names.texts("shortNames"), Categories: names.texts("categories"), Verbs: definitionVerbs, Definition: definition,
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
	if d.hasCondition("Terminating") {
		base.Verbs = terminatingVerbs
	}
	versions := d.list("spec", "versions")
	for _, v := range versions {
		if v.flag("storage") {
			base.StorageVersion = v.text("name")
		}
	}
	if base.StorageVersion == "" {
		return nil, fmt.Errorf("define %s: no version has storage: true", name)
	}
	base.storageVersionHash = storageVersionHash(base.Group, base.StorageVersion, base.Kind)
	base.openapi = definitionOpenAPI(d)
	var resources []*Resource
	for _, v := range versions {
		if !v.flag("served") {
			continue
		}
		resource := base
		resource.Version = v.text("name")
		resource.setVersion(v, rules)
		resources = append(resources, &resource)
	}
	return resources, nil
}

// setVersion sets the fields of an entry of spec.versions.
func (r *Resource) setVersion(v document, rules structural.RuleCompiler) {
	if schema := v.at("schema", "openAPIV3Schema"); schema != nil {
		r.schema = sync.OnceValue(func() *structural.Schema { return structural.Compile(schema, rules) })
	}
	r.Subresources = map[string]Subresource{}
	if v.has("subresources", "status") {
		r.Subresources["status"] = Subresource{Name: "status", Group: r.Group, Version: r.Version, Kind: r.Kind, Verbs: subresourceVerbs}
		r.subresourceNames = append(r.subresourceNames, "status")
	}
	if v.has("subresources", "scale") {
		scale := v.at("subresources", "scale")
		r.Subresources["scale"] = Subresource{
			Name: "scale", Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: subresourceVerbs,
			Scale: &ScalePaths{scale.text("specReplicasPath"), scale.text("statusReplicasPath"), scale.text("labelSelectorPath")},
		}
		r.subresourceNames = append(r.subresourceNames, "scale")
	}
	for _, c := range v.list("additionalPrinterColumns") {
		priority, _ := c["priority"].(int64)
		r.columns = append(r.columns, Column{
			Name: c.text("name"), Type: c.text("type"), Format: c.text("format"), Description: c.text("description"),
			Priority: int32(priority), JSONPath: c.text("jsonPath"),
		})
	}
	if len(r.columns) == 0 {
		r.columns = []Column{{Name: "Age", Type: "date", Description: ageDescription, JSONPath: ".metadata.creationTimestamp"}}
	}
	for _, field := range v.list("selectableFields") {
		r.SelectableFields = append(r.SelectableFields, strings.TrimPrefix(field.text("jsonPath"), "."))
	}
}

// ageDescription is the column description of a CRD without printer columns, copied from ObjectMeta.creationTimestamp.
const ageDescription = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not " +
	"guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented " +
	"in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: " +
	"https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"

// document is a decoded object. Missing fields, and fields of another type, read as the zero value.
type document map[string]any

func (d document) at(path ...string) document {
	found, _, _ := unstructured.NestedFieldNoCopy(d, path...)
	inner, _ := found.(map[string]any)
	return inner
}

func (d document) has(path ...string) bool {
	return d.at(path...) != nil
}

func (d document) text(path ...string) string {
	found, _, _ := unstructured.NestedFieldNoCopy(d, path...)
	text, _ := found.(string)
	return text
}

func (d document) flag(path ...string) bool {
	found, _, _ := unstructured.NestedFieldNoCopy(d, path...)
	flag, _ := found.(bool)
	return flag
}

func (d document) texts(path ...string) []string {
	found, _, _ := unstructured.NestedFieldNoCopy(d, path...)
	items, _ := found.([]any)
	var texts []string
	for _, item := range items {
		if text, isText := item.(string); isText {
			texts = append(texts, text)
		}
	}
	return texts
}

func (d document) list(path ...string) []document {
	found, _, _ := unstructured.NestedFieldNoCopy(d, path...)
	items, _ := found.([]any)
	var list []document
	for _, item := range items {
		if one, isMap := item.(map[string]any); isMap {
			list = append(list, one)
		}
	}
	return list
}

func (d document) hasCondition(conditionType string) bool {
	return slices.ContainsFunc(d.list("status", "conditions"), func(c document) bool {
		return c.text("type") == conditionType && c.text("status") == "True"
	})
}
