package dynamic

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Until is what [Resource.Wait] waits for. Make one with [Exists], [Gone], [Condition], [ConditionIs], [Field],
// [HasField] or [Matches]. It may be used again.
type Until struct {
	// unmet says what is missing, or "".
	unmet func(seen) (string, error)
	wrong error // of what it was made of
}

// seen is what is known of the object that is waited for.
type seen struct {
	now   *unstructured.Object // nil: it is not there
	first types.UID            // of the first object that there was
}

// Exists holds when there is an object of that name.
func Exists() Until {
	return onObject(func(*unstructured.Object) (string, error) { return "", nil })
}

// onObject is an Until that an object that is not there does not meet.
func onObject(unmet func(*unstructured.Object) (string, error)) Until {
	return Until{unmet: func(s seen) (string, error) {
		if s.now == nil {
			return "it does not exist", nil
		}
		return unmet(s.now)
	}}
}

// Gone holds when there is no object of that name, or another one than there was first: as for kubectl delete --wait
// an object that was made anew under the old one's name does not count. Where that may happen before Wait is called, as
// with the pods of a StatefulSet, give the uids of the old objects.
func Gone(uids ...types.UID) Until {
	return Until{unmet: func(s seen) (string, error) {
		if s.now == nil {
			return "", nil
		}
		old := uids
		if len(old) == 0 {
			old = []types.UID{s.first}
		}
		if !slices.Contains(old, s.now.GetUID()) {
			return "", nil
		}
		text := "it still exists"
		if since := s.now.GetDeletionTimestamp(); since != nil {
			text += ", being deleted since " + since.UTC().Format("2006-01-02T15:04:05Z")
		}
		if finalizers := s.now.GetFinalizers(); len(finalizers) > 0 {
			text += ", with the finalizers " + strings.Join(finalizers, ", ")
		}
		return text, nil
	}}
}

// Condition holds when the entry of that type in status.conditions has the status True, as [ConditionIs] has it.
func Condition(conditionType string) Until {
	return ConditionIs(conditionType, metav1.ConditionTrue)
}

// ConditionIs holds when the entry of that type in status.conditions has that status, neither of them in regard of
// case, and is up to date: where it, or else the status, has an observedGeneration, that must not be behind
// metadata.generation. All of this is as in kubectl wait. For a condition's reason use [Field]:
// "status.conditions[type=Progressing].reason".
func ConditionIs(conditionType string, status metav1.ConditionStatus) Until {
	if conditionType == "" || status == "" {
		return Until{wrong: errors.New("a condition needs a type and a status")}
	}
	return onObject(func(obj *unstructured.Object) (string, error) {
		condition := conditionOf(obj, conditionType)
		if condition == nil {
			return fmt.Sprintf("condition %s is not there", conditionType), nil
		}
		conditionType := condition["type"] // as the object spells it
		observed, ok := condition["observedGeneration"].(int64)
		if !ok {
			observed, ok, _ = unstructured.Get[int64](obj, "status", "observedGeneration")
		}
		if generation := obj.GetGeneration(); ok && observed < generation {
			return fmt.Sprintf("condition %s was observed at generation %d, the object is at %d", conditionType, observed, generation), nil
		}
		if now, _ := condition["status"].(string); !strings.EqualFold(now, string(status)) {
			text := fmt.Sprintf("condition %s is %q", conditionType, now)
			for _, field := range []string{"reason", "message"} {
				if why, _ := condition[field].(string); why != "" {
					text += ": " + why
				}
			}
			return text, nil
		}
		return "", nil
	})
}

func conditionOf(obj *unstructured.Object, conditionType string) map[string]any {
	conditions, _, _ := unstructured.Get[[]any](obj, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if name, _ := condition["type"].(string); strings.EqualFold(name, conditionType) {
			return condition
		}
	}
	return nil
}

// Field holds when the field at a path of [unstructured.ParsePath], such as "status.phase" or
// "{.spec.ports[name=http].port}", has that value, of the same JSON type: 3 is not "3".
func Field(path string, value any) Until {
	fields, wanted, err := fieldOf(path, value)
	if err != nil {
		return Until{wrong: err}
	}
	return onObject(func(obj *unstructured.Object) (string, error) {
		now, missing := valueAt(obj, path, fields)
		switch {
		case missing != "":
			return missing, nil
		case equal(now, wanted):
			return "", nil
		case obj.GetKind() == "Secret":
			return path + " is another value", nil
		default:
			return fmt.Sprintf("%s is %s, not %s", path, valueText(now), valueText(wanted)), nil
		}
	})
}

// HasField holds when there is a field at a path as of [Field] and it is not null, whatever its value is.
func HasField(path string) Until {
	fields, _, err := fieldOf(path, "")
	if err != nil {
		return Until{wrong: err}
	}
	return onObject(func(obj *unstructured.Object) (string, error) {
		_, missing := valueAt(obj, path, fields)
		return missing, nil
	})
}

// valueAt is the value at a path, or says why there is none.
func valueAt(obj *unstructured.Object, path string, fields []string) (value any, missing string) {
	value, found, err := unstructured.Get[any](obj, fields...)
	switch {
	case err != nil:
		return nil, err.Error()
	case !found:
		return nil, path + " is not there"
	default:
		return value, ""
	}
}

// fieldOf reads a path, and a value as JSON would have it.
func fieldOf(path string, value any) (fields []string, plain any, err error) {
	if fields, err = unstructured.ParsePath(path); err != nil {
		return nil, nil, err
	}
	holder, err := unstructured.From(map[string]any{"value": value})
	if err != nil {
		return nil, nil, fmt.Errorf("the value to compare %s with: %w", path, err)
	}
	return fields, holder.Object["value"], nil
}

// equal compares values of JSON, where 1 and 1.0 are the same.
func equal(a, b any) bool {
	switch a := a.(type) {
	case int64:
		if b, ok := b.(float64); ok {
			return float64(a) == b
		}
	case float64:
		if b, ok := b.(int64); ok {
			return a == float64(b)
		}
	}
	return reflect.DeepEqual(a, b)
}

// valueText is a value as an error shows it.
func valueText(value any) string {
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

// Matches holds when the object is there and holds says so; an error of holds ends the wait. text says what holds looks
// for, as in "three ready endpoints", for the error of a wait that ends before that. holds must not change the object.
func Matches(text string, holds func(*unstructured.Object) (bool, error)) Until {
	if holds == nil {
		return Until{wrong: fmt.Errorf("the function that looks for %q is nil", text)}
	}
	return onObject(func(obj *unstructured.Object) (string, error) {
		held, err := holds(obj)
		if err != nil {
			return "", fmt.Errorf("%s: %w", text, err)
		}
		if !held {
			return "not yet: " + text, nil
		}
		return "", nil
	})
}
