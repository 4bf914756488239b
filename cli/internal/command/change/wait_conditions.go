package change

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/internal/jsonpathflag"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/jsonpath"
)

// waitCondition is a parsed value of --for.
type waitCondition struct {
	text      string
	condition dynamic.WaitCondition
	// failure is set to the error of the condition's evaluation, if it has ended the wait.
	failure *error
}

func (c waitCondition) isCreate() bool { return strings.EqualFold(c.text, "create") }
func (c waitCondition) isDelete() bool { return strings.EqualFold(c.text, "delete") }

func parseWaitConditions(texts []string) ([]waitCondition, error) {
	if len(texts) == 0 {
		return nil, fmt.Errorf("unrecognized condition: %q", texts)
	}
	conditions := make([]waitCondition, 0, len(texts))
	for _, text := range texts {
		condition, err := parseWaitCondition(text)
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, condition)
	}
	return conditions, nil
}

func parseWaitCondition(text string) (waitCondition, error) {
	c := waitCondition{text: text}
	if c.isDelete() {
		return c, nil
	}
	if c.isCreate() {
		c.condition = dynamic.Exists()
		return c, nil
	}
	if strings.EqualFold(text, "ready") {
		c.condition = dynamic.Ready()
		return c, nil
	}
	kind, rest, _ := strings.Cut(text, "=")
	switch kind {
	case "condition":
		name, status, hasStatus := strings.Cut(rest, "=")
		if !hasStatus {
			status = "true"
		}
		c.condition = dynamic.ConditionIs(name, metav1.ConditionStatus(status))
	case "jsonpath":
		condition, failure, err := jsonPathCondition(rest)
		if err != nil {
			return waitCondition{}, err
		}
		c.condition = condition
		c.failure = failure
	default:
		return waitCondition{}, fmt.Errorf("unrecognized condition: %q", text)
	}
	return c, nil
}

// jsonPathCondition returns the condition for jsonpath=EXPRESSION[=VALUE], and a pointer to the error of its evaluation.
func jsonPathCondition(text string) (dynamic.WaitCondition, *error, error) {
	expression, value, hasValue, err := splitJSONPath(text)
	if err != nil {
		return dynamic.WaitCondition{}, nil, err
	}
	template, err := jsonpath.Parse(expression, &jsonpath.Options{AllowMissingKeys: true})
	if err != nil {
		return dynamic.WaitCondition{}, nil, err
	}
	failure := new(error)
	condition := dynamic.Matches("jsonpath "+text, func(obj *unstructured.Object) (bool, error) {
		values, err := template.Values(obj)
		if err == nil && len(values) > 1 {
			err = errors.New("given jsonpath expression matches more than one value")
		}
		if err == nil && len(values) == 1 && hasValue && isNested(values[0]) {
			err = errors.New("jsonpath leads to a nested object or list which is not supported")
		}
		if err != nil {
			*failure = err
			return false, err
		}
		return len(values) == 1 && (!hasValue || strings.TrimSpace(fmt.Sprint(values[0])) == strings.TrimSpace(value)), nil
	})
	return condition, failure, nil
}

func isNested(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// splitJSONPath splits EXPRESSION[=VALUE] at its only undoubled '=', and returns the expression in braces.
func splitJSONPath(text string) (expression, value string, hasValue bool, err error) {
	parts := strings.Split(strings.ReplaceAll(text, "==", "\x00"), "=")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], "\x00", "==")
	}
	if len(parts) > 2 {
		return "", "", false, errors.New("jsonpath wait format must be --for=jsonpath='{.status.readyReplicas}'=3 or --for=jsonpath='{.status.readyReplicas}'")
	}
	if parts[0] == "" {
		return "", "", false, errors.New("jsonpath expression cannot be empty")
	}
	if expression, err = jsonpathflag.Relaxed(parts[0]); err != nil || len(parts) == 1 {
		return expression, "", false, err
	}
	value = strings.Trim(parts[1], `'"`)
	if value == "" {
		return "", "", false, errors.New("jsonpath wait has to have a value after equal sign, like --for=jsonpath='{.status.readyReplicas}'=3")
	}
	return expression, value, true, nil
}
