package structural

import (
	"encoding/json"
	stderrors "errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

func (s *Schema) validate(obj, old map[string]any) field.ErrorList {
	return append(s.validateValues(obj, old), s.validateParts(obj, old)...)
}

func (s *Schema) validateParts(obj, old map[string]any) field.ErrorList {
	return append(validateEmbedded(nil, obj, s.root), s.validateLists(obj, old)...)
}

func (s *Schema) validateStatus(obj, old map[string]any) field.ErrorList {
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
