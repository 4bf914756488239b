package difftest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// maxDepth is the maximum depth of drawn objects.
const maxDepth = 7

// schemaSampler draws values of a structural schema. If wrong > 0, a value is faulty with probability 1/wrong: a wrong type,
// null, out of range, or an unknown field.
type schemaSampler struct {
	r     *rand.Rand
	wrong int
}

func (s *schemaSampler) value(schema map[string]any, depth int) any {
	if s.wrong > 0 && depth > 1 && s.r.IntN(s.wrong*4) == 0 {
		return s.wrongValue()
	}
	if enum, isList := schema["enum"].([]any); isList && len(enum) > 0 {
		return enum[s.r.IntN(len(enum))]
	}
	if schema["x-kubernetes-int-or-string"] == true {
		if s.r.IntN(2) == 0 {
			return s.r.IntN(100)
		}
		return "50%"
	}
	switch schema["type"] {
	case "object":
		return s.object(schema, depth)
	case "array":
		items := nested.Map(schema, "items")
		values := []any{}
		for range s.length(schema, "minItems", "maxItems", 3) {
			values = append(values, s.value(items, depth+1))
		}
		return values
	case "string":
		return s.text(schema)
	case "integer":
		return s.integer(schema)
	case "number":
		return float64(s.integer(schema)) + 0.5
	case "boolean":
		return s.r.IntN(2) == 0
	}
	return map[string]any{"any": "value"}
}

func (s *schemaSampler) object(schema map[string]any, depth int) map[string]any {
	object := map[string]any{}
	properties := nested.Map(schema, "properties")
	required := nested.Slice(schema, "required")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if depth == 0 && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		isRequired := slices.Contains(required, any(name))
		if s.wrong > 0 && s.r.IntN(s.wrong*6) == 0 {
			isRequired = false
		}
		likely := depth == 0 || s.r.IntN(2+len(properties)/4) == 0
		property, isMap := properties[name].(map[string]any)
		if isMap && (isRequired || likely && depth < maxDepth) {
			object[name] = s.value(property, depth+1)
		}
	}
	if more, isMap := schema["additionalProperties"].(map[string]any); isMap && depth < maxDepth {
		for _, name := range []string{"one", "two"}[:s.r.IntN(3)] {
			object[name] = s.value(more, depth+1)
		}
	}
	if s.wrong > 0 && s.r.IntN(s.wrong*3) == 0 {
		object["unknownField"] = "x"
	}
	return object
}

func (s *schemaSampler) length(schema map[string]any, minKey, maxKey string, spread int) int {
	low, hasLow := schema[minKey].(float64)
	length := s.r.IntN(spread)
	if hasLow {
		length += int(low)
	}
	if high, hasHigh := schema[maxKey].(float64); hasHigh && length > int(high) && (s.wrong == 0 || s.r.IntN(s.wrong) > 0) {
		length = int(high)
	}
	return length
}

func (s *schemaSampler) integer(schema map[string]any) int {
	low, hasLow := schema["minimum"].(float64)
	high, hasHigh := schema["maximum"].(float64)
	value := 1 + s.r.IntN(20)
	if hasLow && value < int(low) {
		value += int(low)
	}
	if hasHigh && value > int(high) && (s.wrong == 0 || s.r.IntN(s.wrong) > 0) {
		value = int(high)
	}
	return value
}

func (s *schemaSampler) text(schema map[string]any) string {
	switch schema["format"] {
	case "date-time":
		return "2024-05-06T07:08:09Z"
	case "date":
		return "2024-05-06"
	case "duration":
		return "30s"
	case "byte":
		return "aGVsbG8="
	case "uri":
		return "https://example.org/a"
	case "ipv4":
		return "192.0.2.1"
	}
	words := []string{"web", "alpha", "beta", "gamma", "a longer text, with Ümlauts", "10", "5m", "x"}
	if _, hasPattern := schema["pattern"]; hasPattern {
		words = []string{"a", "web", "10", "5m", "100m", "example.org", "https://example.org", "1.2.3"}
	}
	text := words[s.r.IntN(len(words))]
	if low, hasLow := schema["minLength"].(float64); hasLow && len(text) < int(low) {
		text += strings.Repeat("y", int(low)-len(text))
	}
	return text
}

func (s *schemaSampler) wrongValue() any {
	return []any{nil, "wrong", -5, 1.5, true, []any{}, []any{"x", "x"}, map[string]any{"unknownField": 1}, "", 1 << 40}[s.r.IntN(10)]
}
