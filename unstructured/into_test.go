package unstructured

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInto_EqualsAs(t *testing.T) {
	for _, read := range []func(any) error{
		func(into any) error { return Into(decoded(t, wholeWidget), into) },
		func(into any) error { return Into(lazy(t, wholeWidget), into) },
	} {
		want, err := As[widget](lazy(t, wholeWidget))
		require.NoError(t, err)
		got := widget{note: "old", Spec: widgetSpec{Left: "old"}}
		require.NoError(t, read(&got))
		assert.Equal(t, *want, got)

		for _, into := range []any{new(map[string]any), new(any), new(*widget), &Object{}, &Lazy{}} {
			require.NoError(t, read(into))
			back, err := From(into)
			require.NoError(t, err)
			assert.Equal(t, "Widget", back.GetKind(), "%T", into)
		}
	}
}

func TestInto_Errors(t *testing.T) {
	obj := decoded(t, `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"new"},"spec":{"replicas":"three"}}`)
	into := widget{note: "kept"}
	require.EqualError(t, Into(obj, &into), ".spec.replicas: is string, not int32")
	assert.Equal(t, widget{note: "kept"}, into)
	for _, wrong := range []any{nil, widget{}, (*widget)(nil), map[string]any{}} {
		require.ErrorContains(t, Into(obj, wrong), "not a pointer to a value")
	}
	require.EqualError(t, Into((*Object)(nil), &into), "cannot read a nil object as unstructured.widget")
	require.EqualError(t, Into(&Lazy{}, &into), "cannot read a nil object as unstructured.widget")
}

func TestInto_SharesNoMemory(t *testing.T) {
	obj := decoded(t, `{"kind":"K","apiVersion":"v1","map":{"a":"b"}}`)
	var other Object
	require.NoError(t, Into(obj, &other))
	require.NoError(t, Set(&other, "changed", "map", "a"))
	value, _, err := Get[string](obj, "map", "a")
	require.NoError(t, err)
	assert.Equal(t, "b", value)
}
