package normalize_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/apitest/internal/testing/normalize"
)

func TestNormalizer_Value(t *testing.T) {
	n := normalize.New("shop-123", "NAMESPACE")
	object := func(version, uid string) map[string]any {
		return map[string]any{"metadata": map[string]any{
			"generateName": "web-", "name": "web-x7k2p", "namespace": "shop-123", "resourceVersion": version, "uid": uid,
			"creationTimestamp": "2026-01-02T03:04:05Z",
		}}
	}
	first := n.Value(object("17", "0b6e7f3c-9f0d-4c8e-8a53-6b8b2d1f9a11"))
	assert.Equal(t, map[string]any{"metadata": map[string]any{
		"generateName": "web-", "name": "web-*", "namespace": "NAMESPACE", "resourceVersion": "version-1", "uid": "uid-1",
		"creationTimestamp": "TIME",
	}}, first)
	assert.Equal(t, first, n.Value(object("17", "0b6e7f3c-9f0d-4c8e-8a53-6b8b2d1f9a11")), "equal values stay equal")
	assert.NotEqual(t, first, n.Value(object("18", "0b6e7f3c-9f0d-4c8e-8a53-6b8b2d1f9a11")), "another version is another token")
	assert.Equal(t, "does not match (version-2) of web-* at uid-1", n.Text("does not match (18) of web-x7k2p at 0b6e7f3c-9f0d-4c8e-8a53-6b8b2d1f9a11"))
	list := map[string]any{"metadata": map[string]any{"resourceVersion": "19"}, "items": []any{object("18", "0b6e7f3c-9f0d-4c8e-8a53-6b8b2d1f9a11")}}
	normalized := n.Value(list).(map[string]any)
	assert.Equal(t, map[string]any{"resourceVersion": "LIST"}, normalized["metadata"])
	assert.Equal(t, map[string]any{"resourceVersion": "19"}, list["metadata"], "the argument stays")
	old := map[string]any{"metadata": map[string]any{"resourceVersion": "17"}, "items": []any{}}
	assert.Equal(t, map[string]any{"resourceVersion": "version-1"}, n.Value(old).(map[string]any)["metadata"], "older than an object before")
	assert.Equal(t, "version-3", n.Value(object("20", "")).(map[string]any)["metadata"].(map[string]any)["resourceVersion"])
}
