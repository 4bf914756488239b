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

// Rules evaluates the CEL rules of one schema. It is safe for concurrent use.
type Rules interface {
	// Validate returns the rules that obj breaks. old is nil for a creation.
	Validate(ctx context.Context, obj, old map[string]any) field.ErrorList
}

// blockingMessage is the text that the API server adds to errors that keep it from evaluating rules.
const blockingMessage = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"

// ValidateRules returns the CEL rules that obj breaks. errs are the errors of Validate: some types of error keep the API server
// from evaluating rules, and the result says so. Without a RuleCompiler the result is empty.
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
	if s.rules == nil {
		return nil
	}
	rules, err := s.rules()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return rules.Validate(ctx, obj, old)
}

// NotValidated returns what Validate and ValidateRules do not check, for a warning; "" if they check everything.
func (s *Schema) NotValidated() string {
	if s.hasRules && s.rules == nil {
		return "x-kubernetes-validations (set Options.Rules to github.com/anykind/anykind/apitest/cel.Rules{})"
	}
	return ""
}
