package dynamic_test

import (
	"errors"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/anykind/anykind/unstructured"
)

func documents(text string) iter.Seq2[*unstructured.Object, error] {
	return unstructured.NewYAMLDecoder(strings.NewReader(text)).All()
}

func TestClient_ForObjects(t *testing.T) {
	client, server := script(t)
	const text = `{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}
--- {apiVersion: v1, kind: Pod, metadata: {name: db}}
--- {apiVersion: v1, kind: Node, metadata: {name: n1, namespace: "a\nb", labels: {a: b}}, spec: {x: 1}}
--- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}`
	var paths, warnings []string
	var node *unstructured.Object
	for found, err := range client.ForObjects(t.Context(), documents(text)) {
		require.NoError(t, err)
		path, err := found.Resource.Path(found.Object.GetName())
		require.NoError(t, err)
		paths = append(paths, path)
		if found.Warning != "" {
			warnings = append(warnings, found.Warning)
		}
		if found.Object.GetKind() == "Node" {
			node = found.Object
		}
	}
	assert.Equal(t, []string{"/api/v1/namespaces/shop/pods/web", "/api/v1/namespaces/home/pods/db", "/api/v1/nodes/n1", "/api/v1/namespaces/shop"}, paths)
	assert.Equal(t, []string{`nodes "n1": dropped namespace "a\nb": Node is cluster-scoped`}, warnings)
	assert.Equal(t, map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "n1", "labels": map[string]any{"a": "b"}}, "spec": map[string]any{"x": int64(1)},
	}, node.Object)
	assert.Empty(t, server.seen(), "requests other than discovery's")
}

func TestClient_ForObjectsKeepsTheInput(t *testing.T) {
	client, _ := script(t)
	obj, err := unstructured.Decode([]byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","namespace":"x"}}`))
	require.NoError(t, err)
	for found, err := range client.ForObjects(t.Context(), func(yield func(*unstructured.Object, error) bool) { yield(obj, nil) }) {
		require.NoError(t, err)
		assert.Empty(t, found.Object.GetNamespace())
	}
	assert.Equal(t, "x", obj.GetNamespace())
}

func TestClient_ForObjectsErrors(t *testing.T) {
	client, _ := script(t)
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: web}}\n---\n"
	for text, want := range map[string]string{
		pod + "kind: Pod\nkind: Pod": `document 2, line 4: the field "kind" is there twice`,
		pod + "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}\n---\n" + pod: `find the resource of Widget "a": `,
	} {
		var last error
		count := 0
		for found, err := range client.ForObjects(t.Context(), documents(text)) {
			require.NoError(t, last, "an error is the last that is yielded")
			if last = err; found != nil {
				count++
			}
		}
		require.ErrorContains(t, last, want)
		assert.Equal(t, 1, count)
		if strings.Contains(text, "Widget") {
			assert.True(t, meta.IsNoMatchError(errors.Unwrap(last)), "%v", last)
		}
	}
	for _, err := range client.ForObjects(t.Context(), func(yield func(*unstructured.Object, error) bool) { yield(nil, nil) }) {
		require.ErrorContains(t, err, "the object is nil")
	}
	for _, err := range client.ForObjects(t.Context(), func(yield func(*unstructured.Object, error) bool) { yield(nil, io.ErrUnexpectedEOF) }) {
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	for _, err := range client.ForObjects(t.Context(), documents(pod+pod)) {
		require.NoError(t, err)
		break
	}
}
