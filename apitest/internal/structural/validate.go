package structural

import (
	"context"
	"encoding/json"
	stderrors "errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/schema"
)

// Validate validates obj by the schema, except for CEL rules, object metadata and the scale subresource. old is the previous
// object of an update, nil for a creation. Invalid values unchanged from old are tolerated.
func (s *Schema) Validate(obj, old map[string]any) field.ErrorList {
	return append(s.validateValues(obj, old), s.ValidateParts(obj, old)...)
}

// ValidateParts validates embedded resources and list types only. These checks of Validate apply to an object of a wrong kind,
// too.
func (s *Schema) ValidateParts(obj, old map[string]any) field.ErrorList {
	return append(validateEmbedded(nil, obj, s.root), s.validateLists(obj, old)...)
}

// ValidateStatus is Validate for an update of the status subresource. It validates the status only.
func (s *Schema) ValidateStatus(obj, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	if status, found := obj["status"]; found && s.status != nil {
		result := newRatchet(s.status, status, old["status"], s.root.child("status"), "").Validate(status)
		errs = toFieldErrors(field.NewPath("status"), result)
	}
	return append(errs, s.validateLists(obj, old)...)
}

func (s *Schema) validateValues(obj, old map[string]any) field.ErrorList {
	if old == nil {
		return toFieldErrors(nil, validate.NewSchemaValidator(s.openapi, nil, "", strfmt.Default).Validate(obj))
	}
	return toFieldErrors(nil, newRatchet(s.openapi, obj, old, s.root, "").Validate(obj))
}

// validateLists returns errors for duplicates in lists of type set and map. It is skipped if the old object has duplicates.
func (s *Schema) validateLists(obj, old map[string]any) field.ErrorList {
	if old != nil && len(validateLists(nil, old, s.root)) > 0 {
		return nil
	}
	return validateLists(nil, obj, s.root)
}

// toFieldErrors converts the errors of kube-openapi's validator to the types and texts of the API server.
func toFieldErrors(path *field.Path, result *validate.Result) field.ErrorList {
	var errs field.ErrorList
	for _, err := range result.Errors {
		var finding *errors.Validation
		if !stderrors.As(err, &finding) {
			errs = append(errs, field.Invalid(path, "", err.Error()))
			continue
		}
		at := path
		if finding.Name != "" && finding.Name != "." {
			at = path.Child(strings.TrimPrefix(finding.Name, "."))
		}
		errs = append(errs, toFieldError(at, finding))
	}
	return errs
}

func toFieldError(at *field.Path, finding *errors.Validation) *field.Error {
	value := finding.Value
	if value == nil {
		value = ""
	}
	switch finding.Code() {
	case errors.RequiredFailCode:
		return field.Required(at, "")
	case errors.EnumFailCode:
		var supported []string
		for _, value := range finding.Values {
			if s, ok := value.(string); ok {
				supported = append(supported, s)
			} else {
				content, _ := json.Marshal(value)
				supported = append(supported, string(content))
			}
		}
		return field.NotSupported(at, finding.Value, supported)
	case errors.TooLongFailCode:
		return field.TooLong(at, "", asInt(finding.Valid))
	case errors.MaxItemsFailCode, errors.TooManyPropertiesCode:
		return field.TooMany(at, asInt(finding.Value), asInt(finding.Valid))
	case errors.InvalidTypeCode:
		return field.TypeInvalid(at, value, finding.Error())
	}
	return field.Invalid(at, value, finding.Error())
}

func asInt(value any) int {
	if i, ok := value.(int64); ok {
		return int(i)
	}
	return -1
}

// newValidator returns a validator of kube-openapi.
func newValidator(schema *spec.Schema, root any, path string, options ...validate.Option) *validate.SchemaValidator {
	return validate.NewSchemaValidator(schema, root, path, strfmt.Default, options...)
}

// RuleCompiler compiles the CEL rules of schemas. It is safe for concurrent use.
type RuleCompiler interface {
	schema.RuleCompiler

	// ValidateDefinition returns the errors in the rules of a CustomResourceDefinition. old is nil for a creation.
	ValidateDefinition(ctx context.Context, definition, old map[string]any) field.ErrorList
}

// Rules evaluates the CEL rules of a schema.
type Rules = schema.Rules

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

// RulesNotValidated describes the CEL rules of a definition for the warning that they were not compiled. It returns "" without rules.
func RulesNotValidated(definition map[string]any) string {
	var versions []string
	for _, version := range nested.Maps(definition, "spec", "versions") {
		if schema := nested.Map(version, "schema", "openAPIV3Schema"); newNode(schema).anyRule() {
			versions = append(versions, nested.String(version, "name"))
		}
	}
	if len(versions) == 0 {
		return ""
	}
	return "the CEL rules of " + strings.Join(versions, ", ") + " are not compiled (set Options.Rules to cel.Rules{})"
}

// NotValidated describes checks missing in Validate and ValidateRules, for a warning. It returns "" if nothing is missing.
func (s *Schema) NotValidated() string {
	if s.hasRules && s.rules == nil {
		return "x-kubernetes-validations (set Options.Rules to github.com/anykind/anykind/apitest/cel.Rules{})"
	}
	return ""
}
