package write

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/apitest/internal/limits"
)

// patchApply is server-side apply: it merges the applied configuration into live by field ownership.
func (op *operation) patchApply(live *unstructured.Unstructured, body Body) (*unstructured.Unstructured, error) {
	patch := &unstructured.Unstructured{Object: map[string]any{}}
	if body.Object != nil {
		patch.Object = runtime.DeepCopyJSON(body.Object)
	} else if err := limits.CheckAliases(body.Data); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: error converting YAML to JSON: %v", err))
	} else if err := yaml.Unmarshal(body.Data, &patch.Object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	patch.Object, _ = withIntegers(patch.Object).(map[string]any)
	obj, err := op.apply(live, patch)
	if err != nil {
		return nil, err
	}
	if !op.checksFields() || body.Object != nil {
		return obj, nil
	}
	if err := yaml.UnmarshalStrict(body.Data, &map[string]any{}); err != nil {
		if op.options.fieldValidation == metav1.FieldValidationStrict {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding YAML: %v", err))
		}
		for _, text := range yamlTexts(err.Error()) {
			op.warn(text)
		}
	}
	return obj, nil
}

// withIntegers returns a decoded value with whole numbers as int64.
func withIntegers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			value[name] = withIntegers(field)
		}
	case []any:
		for i, item := range value {
			value[i] = withIntegers(item)
		}
	case float64:
		if whole := int64(value); float64(whole) == value {
			return whole
		}
	}
	return value
}
