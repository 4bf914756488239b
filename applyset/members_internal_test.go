package applyset

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSet_PrepareLeavesObjectUnchanged(t *testing.T) {
	for text, want := range map[string]string{
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","labels":{"app":"a"},"managedFields":[{}]},"data":{"b":"Yg=="},"stringData":{"a":"a"}}`: `{
			"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"shop","labels":{"app":"a","applyset.kubernetes.io/part-of":"id"}},
			"data":{"a":"YQ==","b":"Yg=="}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"a":"a"}}`: `{
			"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"shop","labels":{"applyset.kubernetes.io/part-of":"id"}},"data":{"a":"YQ=="}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"home"},"stringData":{"a":"a"}}`: `{
			"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop","labels":{"applyset.kubernetes.io/part-of":"id"}},"stringData":{"a":"a"}}`,
	} {
		obj := decodeObject(t, text)
		assert.Equal(t, decodeObject(t, want), (&Set{id: "id"}).prepare(obj, "shop"))
		assert.Equal(t, decodeObject(t, text), obj)
	}
}
