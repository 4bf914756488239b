package plan

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

func TestChange_WithoutValues(t *testing.T) {
	object := func(kind string) *unstructured.Object {
		return &unstructured.Object{Object: map[string]any{
			"apiVersion": "v1", "kind": kind,
			"metadata":   map[string]any{"name": "s", "annotations": map[string]any{lastApplied: `{"data":"long ago"}`}},
			"data":       map[string]any{"key": "aHVudGVyMg==", "empty": ""},
			"stringData": map[string]any{"lines": "first\n\"second\"", "count": int64(4711), "list": []any{map[string]any{"deep": "within"}, nil}},
		}}
	}
	for _, c := range []struct{ text, want string }{
		{`secrets "s" is forbidden: policy`, `secrets "s" is forbidden: policy`},
		{".data.x: expected string, got &value.valueUnstructured{Value:5}", ".data.x: expected string"},
		{"denied: hunter2", hiddenText},
		{"denied: aHVudGVyMg==", hiddenText},
		{`denied: "first\n\"second\""`, hiddenText},
		{"denied: 4711", hiddenText},
		{"denied: map[deep:within]", hiddenText},
		{"denied: d2l0aGlu", hiddenText},
		{`too long: {"data":"long ago"}`, hiddenText},
	} {
		change := &Change{Live: object("Secret")}
		assert.Equal(t, c.want, change.withoutValuesIn(c.text))
		change = &Change{Want: object("ConfigMap")}
		assert.Equal(t, c.text, change.withoutValuesIn(c.text), "of a ConfigMap")
	}

	change := &Change{Want: object("Secret")}
	status := &apierrors.StatusError{ErrStatus: metav1.Status{
		Reason: metav1.StatusReasonInvalid, Code: 422, Message: "data: hunter2",
		Details: &metav1.StatusDetails{Name: "s", Causes: []metav1.StatusCause{{Message: "hunter2"}}},
	}}
	err := change.withoutValues(status)
	assert.True(t, apierrors.IsInvalid(err))
	var masked *apierrors.StatusError
	if assert.ErrorAs(t, err, &masked) {
		assert.Equal(t, &metav1.StatusDetails{Name: "s"}, masked.ErrStatus.Details)
	}
	assert.Equal(t, hiddenText, err.Error())
	assert.Equal(t, "data: hunter2", status.ErrStatus.Message, "the error of the server is unchanged")
	for _, err := range []error{errors.New("hunter2 is no server"), &dynamic.ApplyConflictError{}} {
		assert.Same(t, err, change.withoutValues(err))
	}
}
