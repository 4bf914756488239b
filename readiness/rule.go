package readiness

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/unstructured"
)

// Rule defines the status of a kind. It is data and can be stored as JSON or YAML.
//
// The object is Failed if any check of Failed holds, else InProgress if any check of InProgress holds, else Current if all checks
// of Current hold, and otherwise InProgress. No check holds while the status is outdated. A rule without checks makes every object
// of the kind Current, which suits kinds without a controller. Only deletion comes before a rule: see the package's
// documentation.
type Rule struct {
	// Group is the API group, empty for the core group. A rule applies to all versions of the group.
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`

	Failed     []Check `json:"failed,omitempty"`
	InProgress []Check `json:"inProgress,omitempty"`
	Current    []Check `json:"current,omitempty"`

	// IgnoreObservedGeneration is for a controller that does not keep status.observedGeneration up to date. By default the status
	// is outdated while that integer differs from metadata.generation, and the object is InProgress.
	IgnoreObservedGeneration bool `json:"ignoreObservedGeneration,omitempty"`
}

// Check compares a condition or a field.
type Check struct {
	// Condition is the type of an entry of status.conditions, in its exact case. An absent entry does not hold, nor does an entry
	// with observedGeneration < metadata.generation.
	Condition string `json:"condition,omitempty"`
	// Field is the path of a field, as of [unstructured.ParsePath]: "status.phase", "status.loadBalancer.ingress[0].ip". An
	// absent or null field does not hold, nor does a field below a value of an unexpected type.
	Field string `json:"field,omitempty"`
	// Values are the accepted values. Booleans and numbers are compared in their JSON form: "true", "3". By default a condition
	// holds if its status is True, and a field if it exists.
	Values []string `json:"values,omitempty"`
	// Reasons are the accepted reasons of the condition. By default every reason is accepted.
	Reasons []string `json:"reasons,omitempty"`
}

// Validate returns an error for a rule without a kind. It also rejects a check with both or neither of a condition and a field,
// with an invalid path or with reasons for a field.
func (r Rule) Validate() error {
	if r.Kind == "" {
		return errors.New("rule: it has no kind")
	}
	return cmp.Or(r.validate("failed", r.Failed), r.validate("inProgress", r.InProgress), r.validate("current", r.Current))
}

// validate returns the first error of the checks, with field as their name.
func (r Rule) validate(field string, checks []Check) error {
	for i, check := range checks {
		if err := check.validate(); err != nil {
			return fmt.Errorf("rule for %s: %s[%d]: %w", schema.GroupKind{Group: r.Group, Kind: r.Kind}, field, i, err)
		}
	}
	return nil
}

func (c Check) validate() error {
	switch {
	case (c.Condition == "") == (c.Field == ""):
		return errors.New("it needs either a condition or a field")
	case c.Field == "":
		return nil
	case len(c.Reasons) > 0:
		return errors.New("only a condition has reasons")
	}
	fields, err := unstructured.ParsePath(c.Field)
	if err == nil {
		_, _, err = unstructured.Get[any](&unstructured.Object{}, fields...) // rejects a path of several values
	}
	return err
}

// apply returns the status of an object that is not being deleted.
func (r Rule) apply(o *object) Result {
	hasChecks := len(r.Failed)+len(r.InProgress)+len(r.Current) > 0
	if outdated := o.outdated(); hasChecks && !r.IgnoreObservedGeneration && outdated != (Result{}) {
		return outdated
	}
	for _, check := range r.Failed {
		if result, holds := check.evaluate(o); holds {
			result.Status = Failed
			return result
		}
	}
	for _, check := range r.InProgress {
		if result, holds := check.evaluate(o); holds {
			result.Status = InProgress
			return result
		}
	}
	result := Result{Message: "every object of this kind is"}
	for _, check := range r.Current {
		checked, holds := check.evaluate(o)
		if result = checked; !holds {
			result.Status = InProgress
			return result
		}
	}
	result.Status = Current
	return result
}

// evaluate reports whether the check holds. The result explains the outcome; its Status is meaningless.
func (c Check) evaluate(o *object) (result Result, holds bool) {
	if c.Condition != "" {
		return c.evaluateCondition(o)
	}
	result.Field = c.Field
	fields, _ := unstructured.ParsePath(c.Field) // it has been validated
	value, found, err := o.value(fields...)
	text := valueText(value)
	switch {
	case err != nil:
		result.Message = err.Error()
	case !found:
		result.Message = c.Field + " does not exist"
	case len(c.Values) == 0, slices.Contains(c.Values, text):
		result.Message = fmt.Sprintf("%s is %s", c.Field, text)
		holds = true
	default:
		result.Message = fmt.Sprintf("%s is %s, not %s", c.Field, text, strings.Join(c.Values, " or "))
	}
	return result, holds
}

func (c Check) evaluateCondition(o *object) (result Result, holds bool) {
	observed, exists := o.condition(c.Condition)
	behind := o.behind(observed)
	statuses := c.Values
	if len(statuses) == 0 {
		statuses = []string{"True"}
	}
	switch {
	case !exists:
		return o.missing(observed), false
	case behind != Result{}:
		return behind, false
	case !slices.Contains(statuses, observed.status):
		return observed.result(""), false
	case len(c.Reasons) > 0 && !slices.Contains(c.Reasons, observed.reason):
		result = observed.result("")
		result.Field = observed.path("reason")
		return result, false
	default:
		return observed.result(""), true
	}
}

// valueText returns the value in its JSON form, strings without quotes.
func valueText(value any) string {
	switch value := value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return value
	default:
		text, err := json.Marshal(value)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
}
