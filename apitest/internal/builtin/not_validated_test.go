package builtin_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/builtin"
)

func TestNotValidated_Autoscaler(t *testing.T) {
	metric := func(kind string) any {
		return map[string]any{"type": "Resource", "resource": map[string]any{"name": "cpu", "target": map[string]any{"type": kind}}}
	}
	for name, tc := range map[string]struct {
		spec map[string]any
		want []string
	}{
		"utilization": {map[string]any{"metrics": []any{metric("Utilization")}}, nil},
		"value":       {map[string]any{"metrics": []any{metric("Utilization"), metric("AverageValue")}}, []string{"spec.metrics[1]"}},
		"pods":        {map[string]any{"metrics": []any{map[string]any{"type": "Pods"}}}, []string{"spec.metrics[0]"}},
		"behavior":    {map[string]any{"behavior": map[string]any{}}, []string{"spec.behavior"}},
		"nothing":     {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			obj := map[string]any{"spec": tc.spec}
			assert.Equal(t, tc.want, builtin.NotValidated(schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}, obj))
		})
	}
}
