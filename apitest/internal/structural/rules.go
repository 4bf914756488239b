package structural

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// RuleCompiler compiles the CEL rules of schemas. It is safe for concurrent use.
type RuleCompiler interface {
	// Compile returns the rules of an openAPIV3Schema.
	Compile(openAPIV3 map[string]any) (Rules, error)
	// ValidateDefinition returns the errors in the rules of a CustomResourceDefinition. old is nil for a creation.
	ValidateDefinition(ctx context.Context, definition, old map[string]any) field.ErrorList
}

// Rules evaluates the CEL rules of a schema. It is safe for concurrent use.
type Rules interface {
	// Validate returns the rules broken by obj. old is nil for a creation.
	Validate(ctx context.Context, obj, old map[string]any) field.ErrorList
}

// blockingMessage is added by the API server to errors that prevent the evaluation of rules.
const blockingMessage = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"

// ValidateRules returns the CEL rules broken by obj. errs are the errors of Validate. Some types of errors prevent the evaluation
// of rules; the result is then an error with blockingMessage. Without a RuleCompiler the result is empty.
func (s *Schema) ValidateRules(ctx context.Context, errs field.ErrorList, obj, old map[string]any) field.ErrorList {
	if !s.hasRules {
		return nil
	}
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return field.ErrorList{field.Invalid(nil, nil, blockingMessage)}
		default: // do not prevent the evaluation
		}
	}
	if s.rules == nil {
		return nil
	}
	rules, err := s.rules()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return rules.Validate(ctx, obj, old)
}

// NotValidated describes checks missing in Validate and ValidateRules, for a warning. It returns "" if nothing is missing.
func (s *Schema) NotValidated() string {
	if s.hasRules && s.rules == nil {
		return "x-kubernetes-validations (set Options.Rules to github.com/anykind/anykind/apitest/cel.Rules{})"
	}
	return ""
}
