package builtin

import (
	"strconv"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// checker collects the validation errors of an object.
type checker struct{ errs field.ErrorList }

func (c *checker) add(errs ...*field.Error) { c.errs = append(c.errs, errs...) }

func (c *checker) invalid(at *field.Path, value any, details ...string) {
	for _, detail := range details {
		c.add(field.Invalid(at, value, detail))
	}
}

// require adds an error if a field is absent or empty.
func (c *checker) require(at *field.Path, obj object, name string) bool {
	switch value := obj[name].(type) {
	case nil:
	case string:
		if value != "" {
			return true
		}
	case []any:
		if len(value) > 0 {
			return true
		}
	default:
		return true
	}
	c.add(field.Required(at.Child(name), ""))
	return false
}

// oneOf adds an error if a field has none of the values. Their order is the order in the server's text.
func (c *checker) oneOf(at *field.Path, obj object, name string, values ...string) {
	value := nested.String(obj, name)
	if value == "" {
		c.add(field.Required(at.Child(name), ""))
		return
	}
	for _, valid := range values {
		if value == valid {
			return
		}
	}
	c.add(field.NotSupported(at.Child(name), value, values))
}

func (c *checker) nonNegative(at *field.Path, obj object, names ...string) {
	for _, name := range names {
		if n, ok := obj[name].(int64); ok {
			c.add(apivalidation.ValidateNonnegativeField(n, at.Child(name))...)
		}
	}
}

// immutable adds an error for each changed field of an update.
func (c *checker) immutable(at *field.Path, obj, old object, names ...string) {
	if old == nil {
		return
	}
	for _, name := range names {
		c.add(apivalidation.ValidateImmutableField(obj[name], old[name], at.Child(name))...)
	}
}

func (c *checker) label(at *field.Path, value string) {
	c.invalid(at, value, validation.IsDNS1123Label(value)...)
}

func (c *checker) subdomain(at *field.Path, value string) {
	c.invalid(at, value, validation.IsDNS1123Subdomain(value)...)
}

// portOrName checks a port number or port name.
func (c *checker) portOrName(at *field.Path, value any) {
	switch value := value.(type) {
	case string:
		c.invalid(at, value, validation.IsValidPortName(value)...)
	case int64:
		c.invalid(at, value, validation.IsValidPortNum(int(value))...)
	}
}

// intOrPercent checks a number or percentage, and returns its number.
func (c *checker) intOrPercent(at *field.Path, value any) int {
	switch value := value.(type) {
	case int64:
		c.add(apivalidation.ValidateNonnegativeField(value, at)...)
		return int(value)
	case string:
		c.invalid(at, value, validation.IsValidPercent(value)...)
		n, _ := strconv.Atoi(strings.TrimSuffix(value, "%"))
		return n
	}
	return 0
}

// notMoreThanAll adds an error for a percentage above 100.
func (c *checker) notMoreThanAll(at *field.Path, value any) {
	if percent, ok := value.(string); ok && len(validation.IsValidPercent(percent)) == 0 {
		if n, _ := strconv.Atoi(strings.TrimSuffix(percent, "%")); n > 100 {
			c.invalid(at, value, "must not be greater than 100%")
		}
	}
}

// selector checks a label selector and returns it, nil if it is invalid.
func (c *checker) selector(at *field.Path, selector object) labels.Selector {
	typed := labelSelector(selector)
	c.add(metavalidation.ValidateLabelSelector(typed, metavalidation.LabelSelectorValidationOptions{}, at)...)
	parsed, err := metav1.LabelSelectorAsSelector(typed)
	if err != nil {
		return nil
	}
	return parsed
}

func labelSelector(selector object) *metav1.LabelSelector {
	if selector == nil {
		return nil
	}
	var typed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &typed); err != nil {
		return nil
	}
	return &typed
}
