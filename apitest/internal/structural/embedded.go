package structural

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateEmbedded checks apiVersion, kind and metadata of embedded resources.
func validateEmbedded(at *field.Path, value any, n *node) field.ErrorList {
	if n == nil {
		return nil
	}
	var errs field.ErrorList
	switch value := value.(type) {
	case map[string]any:
		if n.embedded {
			errs = append(errs, validateResource(at, value)...)
		}
		for name, child := range value {
			if property, ok := n.properties[name]; ok {
				errs = append(errs, validateEmbedded(at.Child(name), child, property)...)
			} else if n.additional != nil {
				errs = append(errs, validateEmbedded(at.Key(name), child, n.additional)...)
			}
		}
	case []any:
		for i, child := range value {
			errs = append(errs, validateEmbedded(at.Index(i), child, n.items)...)
		}
	}
	return errs
}

func validateResource(at *field.Path, obj map[string]any) field.ErrorList {
	var errs field.ErrorList
	for _, name := range []string{"apiVersion", "kind"} {
		at := at.Child(name)
		value, found := obj[name]
		s, isString := value.(string)
		switch {
		case !found:
			errs = append(errs, field.Required(at, ""))
		case !isString:
			errs = append(errs, field.Invalid(at, value, "must be a string"))
		case s == "":
			errs = append(errs, field.Invalid(at, s, "must not be empty"))
		case name == "apiVersion":
			if _, err := schema.ParseGroupVersion(s); err != nil {
				errs = append(errs, field.Invalid(at, s, err.Error()))
			}
		default:
			if messages := validation.IsDNS1035Label(strings.ToLower(s)); len(messages) > 0 {
				errs = append(errs, field.Invalid(at, s, "may have mixed case, but should otherwise match: "+strings.Join(messages, ",")))
			}
		}
	}
	metadata, ok := obj["metadata"].(map[string]any)
	if !ok {
		return errs
	}
	var typed metav1.ObjectMeta
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(metadata, &typed); err != nil {
		return append(errs, field.Invalid(at.Child("metadata"), metadata, err.Error()))
	}
	if typed.Name == "" {
		typed.Name = "embedded" // the name of an embedded resource is optional
	}
	return append(errs, apivalidation.ValidateObjectMeta(&typed, typed.Namespace != "", validatePathSegment, at.Child("metadata"))...)
}

// validatePathSegment is a [apivalidation.ValidateNameFunc] for names used as path segments.
func validatePathSegment(name string, isPrefix bool) []string {
	if isPrefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}
