// Package structural prunes, defaults and validates custom resources by their structural schemas, as the API server does.
//
// Built-in kinds have no structural schema: the API server decodes them into Go types, which package builtin reproduces.
package structural

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Schema is a structural schema. It is immutable and safe for concurrent use.
type Schema struct {
	root    *node
	openapi *spec.Schema
	status  *spec.Schema // of the field status; nil if there is none

	hasEmbedded bool // resources in fields
	hasRules    bool
	rules       func() (Rules, error) // compiled at the first use; nil without a RuleCompiler
}

// Compile returns the schema of an openAPIV3Schema. It does not check whether the schema is structural: ValidateDefinition
// does. rules may be nil: then CEL rules are not evaluated.
func Compile(openAPIV3 map[string]any, rules RuleCompiler) *Schema {
	openapi := toOpenAPI(openAPIV3)
	s := &Schema{root: newNode(openAPIV3), openapi: openapi}
	s.root.embedded = false // the root's metadata is checked by the caller
	s.hasEmbedded = s.root.anyEmbedded()
	s.hasRules = s.root.anyRule()
	if rules != nil {
		s.rules = sync.OnceValues(func() (Rules, error) { return rules.Compile(openAPIV3) })
	}
	if status, ok := openapi.Properties["status"]; ok {
		s.status = &status
	}
	return s
}

// Prune does what the API server does when it decodes a custom resource: it removes the fields that are not in the schema,
// nulls that the schema does not permit and unknown fields of metadata, the object's own and those of embedded resources. It
// returns the paths of the unknown fields, such as "spec.x", in the server's order, and an error if metadata is malformed.
func (s *Schema) Prune(obj map[string]any) (unknown []string, err error) { return s.prune(obj) }

// PruneStored does what the API server does when it reads a custom resource from its storage: it prunes as Prune does, but removes
// malformed metadata of embedded resources, too, and leaves the object's own to the caller. An apply stores what is pruned here.
func (s *Schema) PruneStored(obj map[string]any) { s.pruneStored(obj) }

// Default fills in the schema's default values.
func (s *Schema) Default(obj map[string]any) { s.root.setDefaults(obj) }

// Validate returns what is wrong with obj by the schema, without CEL rules, object metadata and the scale subresource. On an
// update, old is the previous object, and invalid values that did not change are tolerated; on creation it is nil.
func (s *Schema) Validate(obj, old map[string]any) field.ErrorList { return s.validate(obj, old) }

// ValidateParts is the part of Validate that an object of a wrong kind is checked by, too: embedded resources and the keys of lists.
func (s *Schema) ValidateParts(obj, old map[string]any) field.ErrorList {
	return s.validateParts(obj, old)
}

// ValidateStatus is Validate for an update of the status subresource, which looks at the status alone.
func (s *Schema) ValidateStatus(obj, old map[string]any) field.ErrorList {
	return s.validateStatus(obj, old)
}
