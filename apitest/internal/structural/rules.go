package structural

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rules evaluates the CEL rules of one schema. It is safe for concurrent use.
type Rules interface {
	// Validate returns the rules that obj breaks. old is nil for a creation.
	Validate(ctx context.Context, obj, old map[string]any) field.ErrorList
}

type ruleCompiler struct {
	compile            func(openAPIV3 map[string]any) (Rules, error)
	validateDefinition func(ctx context.Context, definition, old map[string]any) field.ErrorList
}

// registered is set by the init function of package cel, like a driver of database/sql.
var registered atomic.Pointer[ruleCompiler]

// RegisterRules makes schemas evaluate CEL rules by what compile returns, and definitions have their rules checked by
// validateDefinition.
func RegisterRules(compile func(openAPIV3 map[string]any) (Rules, error), validateDefinition func(ctx context.Context, definition, old map[string]any) field.ErrorList) {
	registered.Store(&ruleCompiler{compile, validateDefinition})
}

// blockingMessage is the text that the API server adds to errors that keep it from evaluating rules.
const blockingMessage = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"

// ValidateRules returns the CEL rules that obj breaks, given what else is wrong with it: with some errors, the API server does
// not evaluate rules, and says so. Without package cel, rules hold.
func (s *Schema) ValidateRules(ctx context.Context, errs field.ErrorList, obj, old map[string]any) field.ErrorList {
	if !s.hasRules {
		return nil
	}
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return field.ErrorList{field.Invalid(nil, nil, blockingMessage)}
		default: // rules are evaluated despite the others
		}
	}
	rules, err := s.rules()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if rules == nil {
		return nil
	}
	return rules.Validate(ctx, obj, old)
}

// NotValidated returns what Validate and ValidateRules do not check, for a warning; "" if they check everything.
func (s *Schema) NotValidated() string {
	if s.hasRules && registered.Load() == nil {
		return "x-kubernetes-validations (import github.com/anykind/anykind/apitest/cel)"
	}
	return ""
}

// compileRules returns the rules of the schema; nil without package cel.
func compileRules(openAPIV3 map[string]any) (Rules, error) {
	if compiler := registered.Load(); compiler != nil {
		return compiler.compile(openAPIV3)
	}
	return nil, nil
}

// ValidateDefinitionRules returns what is wrong with the CEL rules of a definition. Without package cel it is nothing.
func ValidateDefinitionRules(ctx context.Context, definition, old map[string]any) field.ErrorList {
	if compiler := registered.Load(); compiler != nil {
		return compiler.validateDefinition(ctx, definition, old)
	}
	return nil
}
