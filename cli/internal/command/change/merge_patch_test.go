package change

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/unstructured"
)

func TestNewMergePatch_Differences(t *testing.T) {
	before := map[string]any{"a": int64(1), "b": map[string]any{"c": "x", "d": "y"}, "list": []any{"p"}, "gone": []any{"q"}}
	after := map[string]any{"a": int64(2), "b": map[string]any{"c": "x", "e": "z"}, "list": []any{"p", "r"}, "new": []any{}}
	patch := newMergePatch(before, after)
	assert.Equal(t, map[string]any{
		"a": int64(2), "b": map[string]any{"d": nil, "e": "z"}, "list": []any{"p", "r"}, "gone": nil, "new": []any{},
	}, patch.content)
	assert.Len(t, patch.lists, 2)
	assert.NoError(t, patch.checkLists(&unstructured.Object{Object: before}))
	changed := map[string]any{"list": []any{"p", "other"}, "gone": []any{"q"}}
	assert.ErrorIs(t, patch.checkLists(&unstructured.Object{Object: changed}), errListChanged)
	assert.True(t, newMergePatch(before, before).isEmpty())
}

func TestWithResourceVersion_CopiesPatch(t *testing.T) {
	content := map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}
	changed := withResourceVersion(content, "7")
	assert.Equal(t, map[string]any{"labels": map[string]any{"a": "b"}, "resourceVersion": "7"}, changed["metadata"])
	assert.NotContains(t, content["metadata"], "resourceVersion")
	own := map[string]any{"metadata": map[string]any{"resourceVersion": "3"}}
	assert.Equal(t, own, withResourceVersion(own, "7"))
}
