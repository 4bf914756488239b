package yamltree_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/internal/yamltree"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse_SyntaxError(t *testing.T) {
	for data, want := range map[string]struct {
		line    int
		problem string
	}{
		"a: b: c":              {1, "its YAML is broken: mapping values are not allowed in this context"},
		"a: b\nb: c: d\ne: f":  {2, "its YAML is broken: mapping values are not allowed in this context"},
		"a: [b\nc: d\ne: f\n":  {3, "its YAML is broken: did not find expected ',' or ']'"},
		"a: *secret":           {1, "a value starts with * and so refers to an anchor that does not exist (put the value in quotes)"},
		"a: b\n---\nb: \x01\n": {3, "its YAML is broken: control characters are not allowed"},
	} {
		_, line, err := yamltree.Parse([]byte(data), 2)
		require.EqualError(t, err, want.problem, data)
		assert.Equal(t, want.line, line, data)
	}
}

func TestParse_AtMostMaxDocuments(t *testing.T) {
	for data, want := range map[string]int{"": 0, "# a": 0, "a": 1, "a\n---\nb": 2, "a\n---\nb\n---\n[": 2} {
		documents, _, err := yamltree.Parse([]byte(data), 2)
		require.NoError(t, err)
		assert.Len(t, documents, want, data)
	}
}

func TestField_LastCounts(t *testing.T) {
	documents, _, err := yamltree.Parse([]byte("a: b\na: c"), 1)
	require.NoError(t, err)
	assert.Equal(t, "c", yamltree.Field(documents[0].Content[0], "a").Value)
	assert.Nil(t, yamltree.Field(documents[0].Content[0], "b"))
	assert.Nil(t, yamltree.Field(nil, "a"))
}
