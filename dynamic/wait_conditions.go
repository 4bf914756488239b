package dynamic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

// WaitCondition is a condition for [Handle.Wait]. [Exists], [Deleted], [Ready], [Condition], [ConditionIs], [FieldEquals],
// [HasField] and [Matches] create it. It may be used repeatedly.
type WaitCondition struct {
	// reason returns why the condition does not hold for w.object, or "".
	reason  func(w *waiter) (string, error)
	invalid error // from the arguments of the constructor
}

// Exists holds if the object exists.
func Exists() WaitCondition {
	return objectCondition(func(*unstructured.Object) (string, error) { return "", nil })
}

// objectCondition returns a condition that does not hold for a missing object.
func objectCondition(reason func(*unstructured.Object) (string, error)) WaitCondition {
	return WaitCondition{reason: func(w *waiter) (string, error) {
		if w.object == nil {
			return "it does not exist", nil
		}
		return reason(w.object)
	}}
}

// Deleted holds if the object does not exist, or has a different UID than at first: as in kubectl delete --wait, an object
// recreated under the same name does not count. If the object may be recreated before the call of Wait, like the pods of a
// StatefulSet, pass the uids of the old objects.
func Deleted(uids ...types.UID) WaitCondition {
	return WaitCondition{reason: func(w *waiter) (string, error) {
		old := uids
		if len(old) == 0 {
			old = []types.UID{w.firstUID}
		}
		obj := w.object
		if obj == nil || !slices.Contains(old, obj.GetUID()) {
			return "", nil
		}
		if obj.GetDeletionTimestamp() != nil {
			if result := readiness.Compute(obj, nil); result.Status == readiness.Terminating {
				return "it still exists, " + result.Message, nil
			}
		}
		return "it still exists", nil
	}}
}

// Ready holds if the status of the object is Current. [Handle.Readiness] determines the status: a rollout of a Deployment,
// StatefulSet or DaemonSet is complete, a Pod is ready or has succeeded, a CustomResourceDefinition is established, the condition
// Ready of a custom resource is True. A custom resource whose kind has the subresource status needs a status. For kinds without a
// controller pass a rule without checks, readiness.Rule{Group: "example.com", Kind: "Config"}.
//
// Failed ends the wait with a [*ReadinessError], like kubectl rollout status after the progress deadline. Two failures of a Pod do
// not end the wait, because the cluster retries: the Pod is unschedulable, or its container crashes. To wait through further
// failures, call Handle.Readiness in [Matches].
//
// Without status.observedGeneration a status cannot be recognized as outdated: the object may be Current or Failed from before
// its last change. An invalid rule makes Wait return an [*InvalidRequestError].
func Ready(rules ...readiness.Rule) WaitCondition {
	for _, rule := range rules {
		if err := rule.Validate(); err != nil {
			return WaitCondition{invalid: err}
		}
	}
	return WaitCondition{reason: func(w *waiter) (string, error) {
		if w.object == nil {
			return "it does not exist", nil
		}
		result := w.resource.readiness(w.object, rules)
		switch {
		case result.Status == readiness.Current:
			return "", nil
		case result.Status == readiness.Failed && !isRetriedPod(w.object):
			return "", &ReadinessError{Result: result}
		default:
			return "it is " + result.String(), nil
		}
	}}
}

// Readiness returns the status of a whole object of the handle's resource, by [readiness.Compute] with the given rules. Discovery
// has the subresources of the resource; handles from [Client.ForGVR] do not know them. It sends no request.
func (h *Handle[T]) Readiness(obj *T, rules ...readiness.Rule) readiness.Result {
	if obj == nil {
		return h.readiness(nil, rules)
	}
	if lazy, ok := any(obj).(*unstructured.Lazy); ok {
		return readiness.Compute(lazy, h.readinessOptions(rules)) // decodes only what the rules read
	}
	encoded, err := h.codec.encode(obj)
	if err != nil {
		return readiness.Result{Status: readiness.Unknown, Message: printable(err.Error())}
	}
	return h.readiness(h.withKind(encoded), rules)
}

func (e *endpoint) readiness(obj *unstructured.Object, rules []readiness.Rule) readiness.Result {
	return readiness.Compute(obj, e.readinessOptions(rules))
}

func (e *endpoint) readinessOptions(rules []readiness.Rule) *readiness.Options {
	opts := &readiness.Options{Rules: rules}
	if resource := e.apiResource; len(resource.Verbs)+len(resource.Subresources) > 0 {
		_, hasStatus := resource.Subresource("status")
		opts.StatusSubresource = &hasStatus
	}
	return opts
}

// isRetriedPod reports whether obj is a pod that has not failed for good.
func isRetriedPod(obj *unstructured.Object) bool {
	phase, _, _ := unstructured.Get[string](obj, "status", "phase")
	return obj.GetAPIVersion() == "v1" && obj.GetKind() == "Pod" && phase != "Failed"
}

// Condition is [ConditionIs] with status True.
//
// Condition("Available") does not wait for the rollout of a Deployment: the condition is True while enough replicas are
// available, including replicas of the old version. It holds at once even if the rollout never completes. Use [Ready].
func Condition(conditionType string) WaitCondition {
	return ConditionIs(conditionType, metav1.ConditionTrue)
}

// ConditionIs holds if the entry in status.conditions with the type has the status, and is up to date. Type and status are
// compared without case. The entry is outdated if its observedGeneration (default status.observedGeneration) is less than
// metadata.generation. These rules are kubectl wait's. For a condition's reason use [FieldEquals]:
// "status.conditions[type=Progressing].reason".
func ConditionIs(conditionType string, status metav1.ConditionStatus) WaitCondition {
	if conditionType == "" || status == "" {
		return WaitCondition{invalid: errors.New("a condition needs a type and a status")}
	}
	return objectCondition(func(obj *unstructured.Object) (string, error) {
		condition := findCondition(obj, conditionType)
		if condition == nil {
			return fmt.Sprintf("condition %s is missing", conditionType), nil
		}
		conditionType := condition["type"] // in the object's spelling
		observed, ok := condition["observedGeneration"].(int64)
		if !ok {
			observed, ok, _ = unstructured.Get[int64](obj, "status", "observedGeneration")
		}
		if generation := obj.GetGeneration(); ok && observed < generation {
			return fmt.Sprintf("condition %s was observed at generation %d, the object is at %d", conditionType, observed, generation), nil
		}
		current, _ := condition["status"].(string)
		if strings.EqualFold(current, string(status)) {
			return "", nil
		}
		reason := fmt.Sprintf("condition %s is %q", conditionType, current)
		for _, field := range []string{"reason", "message"} {
			if text, _ := condition[field].(string); text != "" {
				reason += ": " + text
			}
		}
		return reason, nil
	})
}

func findCondition(obj *unstructured.Object, conditionType string) map[string]any {
	conditions, _, _ := unstructured.Get[[]any](obj, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if name, _ := condition["type"].(string); strings.EqualFold(name, conditionType) {
			return condition
		}
	}
	return nil
}

// FieldEquals holds if the field at path has the value, of the same JSON type: 3 does not equal "3". [unstructured.ParsePath]
// parses the path, such as "status.phase" or "{.spec.ports[name=http].port}".
func FieldEquals(path string, value any) WaitCondition {
	wanted, err := unstructured.From(map[string]any{"value": value}) // with the types of decoded JSON
	if err != nil {
		err = fmt.Errorf("the value to compare %s with: %w", path, err)
	}
	return fieldCondition(path, err, func(obj *unstructured.Object, current any) string {
		wanted := wanted.Object["value"]
		switch {
		case equalJSON(current, wanted):
			return ""
		case obj.GetKind() == "Secret":
			return path + " has another value"
		default:
			return fmt.Sprintf("%s is %s, not %s", path, describe(current), describe(wanted))
		}
	})
}

// HasField holds if the field at path exists and is not null. path is as in [FieldEquals].
func HasField(path string) WaitCondition {
	return fieldCondition(path, nil, func(*unstructured.Object, any) string { return "" })
}

// fieldCondition returns a condition on the value at path. It does not hold without a value.
func fieldCondition(path string, invalid error, reason func(obj *unstructured.Object, current any) string) WaitCondition {
	fields, err := unstructured.ParsePath(path)
	if err == nil {
		_, _, err = unstructured.Get[any](&unstructured.Object{}, fields...) // rejects a path to several values
	}
	if err != nil {
		invalid = err
	}
	if invalid != nil {
		return WaitCondition{invalid: invalid}
	}
	return objectCondition(func(obj *unstructured.Object) (string, error) {
		value, found, err := unstructured.Get[any](obj, fields...)
		switch {
		case err != nil:
			return err.Error(), nil //nolint:nilerr // another version of the object may have the field
		case !found:
			return path + " is missing", nil
		default:
			return reason(obj, value), nil
		}
	})
}

// equalJSON reports whether decoded values have equal JSON. 1 and 1.0 are equal.
func equalJSON(a, b any) bool {
	aJSON, aErr := json.Marshal(a)
	bJSON, bErr := json.Marshal(b)
	return aErr == nil && bErr == nil && bytes.Equal(aJSON, bJSON)
}

// describe formats a value for errors, shortened.
func describe(value any) string {
	switch value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("%.80q", value)
	default:
		return fmt.Sprint(value)
	}
}

// Matches holds if the object exists and holds returns true. An error of holds ends the wait. text describes the condition in
// the error of a wait, such as "three ready endpoints". holds must not change the object.
func Matches(text string, holds func(*unstructured.Object) (bool, error)) WaitCondition {
	if holds == nil {
		return WaitCondition{invalid: fmt.Errorf("the function for %q is nil", text)}
	}
	return objectCondition(func(obj *unstructured.Object) (string, error) {
		switch ok, err := holds(obj); {
		case err != nil:
			return "", fmt.Errorf("%s: %w", text, err)
		case !ok:
			return "not yet: " + text, nil
		default:
			return "", nil
		}
	})
}
