package nested

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGet_MissingAndOtherTypes(t *testing.T) {
	obj := map[string]any{"spec": map[string]any{"name": "a", "count": int64(2), "on": true, "list": []any{"x", map[string]any{"y": "z"}}}}
	assert.Equal(t, "a", String(obj, "spec", "name"))
	assert.Equal(t, int64(2), Int64(obj, "spec", "count"))
	assert.True(t, Bool(obj, "spec", "on"))
	assert.Equal(t, []string{"x"}, Strings(obj, "spec", "list"))
	assert.Equal(t, []map[string]any{{"y": "z"}}, Maps(obj, "spec", "list"))
	assert.Empty(t, String(obj, "spec", "count"))
	assert.Empty(t, String(obj, "spec", "name", "below"))
	assert.Empty(t, String(nil, "spec", "name"))
	assert.Nil(t, Map(obj, "status"))
	assert.Empty(t, Maps(obj, "status", "conditions"))
	assert.Nil(t, StringMap(obj, "status"))
	assert.Equal(t, map[string]string{"name": "a", "count": "", "on": "", "list": ""}, StringMap(obj, "spec"))
}

func TestEnsureMap_CreatesMissingMaps(t *testing.T) {
	obj := map[string]any{"metadata": map[string]any{"name": "a"}}
	EnsureMap(obj, "metadata", "labels")["app"] = "web"
	assert.Equal(t, map[string]any{"metadata": map[string]any{"name": "a", "labels": map[string]any{"app": "web"}}}, obj)
}

func TestHasCondition_FirstOfType(t *testing.T) {
	obj := map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Failed", "status": "False"}}}}
	assert.True(t, HasCondition(obj, "Ready"))
	assert.False(t, HasCondition(obj, "Failed"))
	assert.False(t, HasCondition(obj, "Available"))
	assert.Equal(t, "False", Condition(obj, "Failed")["status"])
}
