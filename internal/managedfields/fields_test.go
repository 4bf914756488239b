package managedfields_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/managedfields"
)

// object decodes JSON as objects of the library are decoded.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var value map[string]any
	require.NoError(t, decode(text, &value))
	return value
}

func TestFields_SetOperations(t *testing.T) {
	for name, c := range map[string]struct{ a, b, union, intersection, difference string }{
		"empty":           {`{}`, `{}`, `{}`, `{}`, `{}`},
		"disjoint":        {`{"f:a":{}}`, `{"f:b":{}}`, `{"f:a":{},"f:b":{}}`, `{}`, `{"f:a":{}}`},
		"equal":           {`{"f:a":{"f:b":{}}}`, `{"f:a":{"f:b":{}}}`, `{"f:a":{"f:b":{}}}`, `{"f:a":{"f:b":{}}}`, `{}`},
		"map and field":   {`{"f:a":{".":{},"f:b":{}}}`, `{"f:a":{"f:b":{}}}`, `{"f:a":{".":{},"f:b":{}}}`, `{"f:a":{"f:b":{}}}`, `{"f:a":{}}`},
		"field and map":   {`{"f:a":{".":{},"f:b":{}}}`, `{"f:a":{}}`, `{"f:a":{".":{},"f:b":{}}}`, `{"f:a":{}}`, `{"f:a":{"f:b":{}}}`},
		"whole and below": {`{"f:a":{}}`, `{"f:a":{"f:b":{}}}`, `{"f:a":{".":{},"f:b":{}}}`, `{}`, `{"f:a":{}}`},
		"list items": {
			`{"k:{\"name\":\"a\"}":{".":{},"f:image":{}}}`, `{"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}`,
			`{"k:{\"name\":\"a\"}":{".":{},"f:image":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}`, `{}`,
			`{"k:{\"name\":\"a\"}":{".":{},"f:image":{}}}`,
		},
		"unknown elements": {`{"z:a":{}}`, `{}`, `{"z:a":{}}`, `{}`, `{"z:a":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			a := object(t, c.a)
			b := object(t, c.b)
			assert.Equal(t, object(t, c.union), managedfields.Union(a, b))
			assert.Equal(t, object(t, c.intersection), managedfields.Intersection(a, b))
			assert.Equal(t, object(t, c.difference), managedfields.Difference(a, b))
			assert.Equal(t, c.difference == `{}`, managedfields.Contains(b, a))
			assert.Equal(t, object(t, c.a), a, "the operands are not changed")
			assert.Equal(t, object(t, c.b), b)
		})
	}
}

func TestPaths_MapsAndLeaves(t *testing.T) {
	assert.Empty(t, managedfields.Paths(nil))
	fields := object(t, `{"f:c":{"f:d":{}},"f:a":{".":{},"f:b":{}}}`)
	assert.Equal(t, [][]string{{"f:a"}, {"f:a", "f:b"}, {"f:c", "f:d"}}, managedfields.Paths(fields))
	assert.Equal(t, object(t, `{"f:a":{"f:b":{}}}`), managedfields.Path("f:a", "f:b"))
}

func decode(text string, into any) error {
	return json.UnmarshalCaseSensitivePreserveInts([]byte(text), into)
}
