package managedfields_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/internal/managedfields"
)

func TestRemove_OwnedPaths(t *testing.T) {
	const pod = `{"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"items": [{"name": "x", "image": "i", "policy": "default"}, {"name": "y", "image": "j"}], "set": ["p", "q"]}}`
	for _, c := range []struct{ name, fields, kept, want string }{
		{"field", `{"f:metadata": {"f:labels": {"f:a": {}}}}`, `{}`, `{"metadata": {"labels": {"b": "2"}}, "spec": {"items": [{"name": "x", "image": "i", "policy": "default"}, {"name": "y", "image": "j"}], "set": ["p", "q"]}}`},
		{"map", `{"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}`, `{}`, `{"metadata": {}, "spec": {"items": [{"name": "x", "image": "i", "policy": "default"}, {"name": "y", "image": "j"}], "set": ["p", "q"]}}`},
		{"map with a kept field", `{"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}`, `{"f:metadata": {"f:labels": {"f:b": {}}}}`, `{"metadata": {"labels": {"b": "2"}}, "spec": {"items": [{"name": "x", "image": "i", "policy": "default"}, {"name": "y", "image": "j"}], "set": ["p", "q"]}}`},
		{"item with a defaulted field", `{"f:spec": {"f:items": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:image": {}}}}}`, `{}`, `{"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"items": [{"name": "y", "image": "j"}], "set": ["p", "q"]}}`},
		{"fields of a kept item", `{"f:spec": {"f:items": {"k:{\"name\":\"x\"}": {"f:name": {}, "f:image": {}}}}}`, `{"f:spec": {"f:items": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}}}}`, `{"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"items": [{"name": "x", "policy": "default"}, {"name": "y", "image": "j"}], "set": ["p", "q"]}}`},
		{"value of a set", `{"f:spec": {"f:set": {"v:\"p\"": {}, "v:\"none\"": {}}}}`, `{}`, `{"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"items": [{"name": "x", "image": "i", "policy": "default"}, {"name": "y", "image": "j"}], "set": ["q"]}}`},
		{"missing fields", `{"f:status": {"f:a": {}}, "f:metadata": {"f:labels": {"f:none": {"f:a": {}}}}}`, `{}`, pod},
	} {
		t.Run(c.name, func(t *testing.T) {
			obj := object(t, pod)
			managedfields.Remove(obj, object(t, c.fields), object(t, c.kept))
			assert.Equal(t, object(t, c.want), obj)
		})
	}
}

func TestRemove_SeveralIndexes(t *testing.T) {
	obj := object(t, `{"list": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"]}`)
	managedfields.Remove(obj, object(t, `{"f:list": {"i:0": {}, "i:1": {}, "i:9": {}, "i:10": {}}}`), nil)
	assert.Equal(t, object(t, `{"list": ["c", "d", "e", "f", "g", "h", "i"]}`), obj)
}
