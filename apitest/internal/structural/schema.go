// Package structural prunes, defaults and validates custom resources by their structural schemas, like the API server.
//
// Built-in kinds have no structural schema. The API server decodes them into Go types; see package builtin.
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
	status  *spec.Schema // of the field status, or nil

	hasEmbedded bool // has embedded resources below the root
	hasRules    bool
	rules       func() (Rules, error) // compiled at first use; nil without a RuleCompiler
}

// Compile returns the schema of an openAPIV3Schema. The schema must be structural; see ValidateDefinition. With nil rules, CEL
// rules are not evaluated.
func Compile(openAPIV3 map[string]any, rules RuleCompiler) *Schema {
	openapi := toOpenAPI(openAPIV3)
	s := &Schema{root: newNode(openAPIV3), openapi: openapi}
	s.root.embedded = false // the caller checks the root's metadata
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

// Prune prunes a custom resource like the API server's decoder. It removes unknown fields, nulls in fields that are not nullable,
// and unknown fields of metadata, also in embedded resources. It returns the paths of the unknown fields, such as "spec.x", in
// the server's order, and an error if metadata is malformed.
func (s *Schema) Prune(obj map[string]any) (unknown []string, err error) { return s.prune(obj) }

// PruneStored prunes a stored custom resource like the API server does on reads. Unlike Prune, it also removes malformed metadata
// of embedded resources, and leaves the object's own metadata to the caller. Applied objects are stored unpruned.
func (s *Schema) PruneStored(obj map[string]any) { s.pruneStored(obj) }

// Default sets the schema's defaults.
func (s *Schema) Default(obj map[string]any) { s.root.setDefaults(obj) }

// Validate validates obj by the schema, except for CEL rules, object metadata and the scale subresource. old is the previous
// object of an update, nil for a creation. Invalid values unchanged from old are tolerated.
func (s *Schema) Validate(obj, old map[string]any) field.ErrorList { return s.validate(obj, old) }

// ValidateParts validates embedded resources and list types only. These checks of Validate apply to an object of a wrong kind,
// too.
func (s *Schema) ValidateParts(obj, old map[string]any) field.ErrorList {
	return s.validateParts(obj, old)
}

// ValidateStatus is Validate for an update of the status subresource. It validates the status only.
func (s *Schema) ValidateStatus(obj, old map[string]any) field.ErrorList {
	return s.validateStatus(obj, old)
}
