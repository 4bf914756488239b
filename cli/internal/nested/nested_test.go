package nested_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/cli/internal/nested"
)

func TestNested_WrongTypesAreZero(t *testing.T) {
	object := map[string]any{"a": map[string]any{"text": "x", "count": int64(3), "ratio": 2.5, "on": true, "list": []any{"y"}}}
	assert.Equal(t, "x", nested.String(object, "a", "text"))
	assert.Equal(t, []int64{3, 2}, []int64{nested.Int(object, "a", "count"), nested.Int(object, "a", "ratio")})
	assert.True(t, nested.Bool(object, "a", "on"))
	assert.Equal(t, []any{"y"}, nested.List(object, "a", "list"))
	assert.Len(t, nested.Map(object, "a"), 5)
	for _, path := range [][]string{{"none"}, {"a", "none"}, {"a", "text", "none"}, {"a", "list", "none"}} {
		assert.Nil(t, nested.Value(object, path...))
		assert.Empty(t, nested.String(object, path...))
		assert.Zero(t, nested.Int(object, path...))
		assert.False(t, nested.Bool(object, path...))
		assert.Empty(t, nested.List(object, path...))
		assert.Empty(t, nested.Map(object, path...))
	}
	assert.Zero(t, nested.Int(object, "a", "text"))
	assert.Empty(t, nested.String(object, "a", "count"))
}
