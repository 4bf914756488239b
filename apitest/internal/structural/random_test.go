package structural_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// generator draws objects by a schema: mostly valid ones, with faults of every kind.
type generator struct {
	rand *rand.Rand
}

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.rand.IntN(n) == 0 }

func (g *generator) value(schema map[string]any, depth int) any {
	switch {
	case g.chance(40):
		return nil
	case g.chance(60):
		return g.any()
	}
	if values, ok := schema["enum"].([]any); ok && !g.chance(20) {
		return values[g.rand.IntN(len(values))]
	}
	if schema["x-kubernetes-int-or-string"] == true {
		return []any{int64(5), "50%"}[g.rand.IntN(2)]
	}
	switch schema["type"] {
	case "object":
		return g.object(schema, depth)
	case "array":
		items, _ := schema["items"].(map[string]any)
		list := []any{}
		for range g.rand.IntN(4) {
			list = append(list, g.value(items, depth-1))
		}
		return list
	case "integer":
		return g.integer(schema)
	case "number":
		return []any{int64(3), 2.5}[g.rand.IntN(2)]
	case "boolean":
		return g.chance(2)
	case "string":
		return g.text(schema)
	}
	return g.any()
}

func (g *generator) object(schema map[string]any, depth int) map[string]any {
	obj := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	names := []string{}
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		property, _ := properties[name].(map[string]any)
		isRequired := slices.Contains(required, any(name))
		if isRequired && !g.chance(15) || !isRequired && depth > 0 && g.chance(3) {
			obj[name] = g.value(property, depth-1)
		}
	}
	if additional, ok := schema["additionalProperties"].(map[string]any); ok {
		for i := range g.rand.IntN(3) {
			obj[fmt.Sprintf("key-%d", i)] = g.value(additional, depth-1)
		}
	}
	if g.chance(12) {
		obj["unknownField"] = g.any()
	}
	if schema["x-kubernetes-embedded-resource"] == true {
		obj["apiVersion"] = "v1"
		obj["kind"] = "Widget"
		obj["metadata"] = map[string]any{"name": "widget", "unknownField": "x", "labels": map[string]any{"a": "b"}}
	}
	return obj
}

func (g *generator) integer(schema map[string]any) any {
	if minimum, ok := schema["minimum"].(int64); ok && !g.chance(6) {
		return minimum + int64(g.rand.IntN(3))
	}
	return int64(g.rand.IntN(200) - 20)
}

func (g *generator) text(schema map[string]any) any {
	switch schema["format"] {
	case "date-time":
		if !g.chance(6) {
			return "2026-01-02T03:04:05Z"
		}
	case "byte":
		if !g.chance(6) {
			return "aGVsbG8="
		}
	}
	return []string{"", "a", "name", "some-name", "Some Name", "http://example.com", "10s", "1Gi", "a.b/c", "10.0.0.1",
		"a-name-that-is-longer-than-sixty-three-characters-so-that-limits-are-exceeded"}[g.rand.IntN(11)]
}

func (g *generator) any() any {
	return []any{"text", int64(7), 1.5, true, nil, []any{"a", "a", int64(1)}, map[string]any{"a": "b", "c": map[string]any{"d": nil}}}[g.rand.IntN(7)]
}
