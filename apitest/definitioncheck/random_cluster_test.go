package definitioncheck_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheck_RandomChangesEqualServer compares random changes of random definitions with the server. ANYKIND_CHECK_SCENARIOS is the
// number of changes, ANYKIND_CHECK_SEED repeats a run.
func TestCheck_RandomChangesEqualServer(t *testing.T) {
	t.Parallel()
	count := setting(t, "ANYKIND_CHECK_SCENARIOS", 15)
	seed := setting(t, "ANYKIND_CHECK_SEED", rand.IntN(1<<30))
	t.Logf("ANYKIND_CHECK_SEED=%d", seed)
	all := make([]scenario, count)
	for i := range all {
		g := &generator{rand.New(rand.NewPCG(uint64(seed), uint64(i)))}
		all[i] = g.scenario(t, fmt.Sprintf("random %d", i))
	}
	compareWithServer(t, all)
}

func setting(t *testing.T, name string, value int) int {
	t.Helper()
	if text := os.Getenv(name); text != "" {
		var err error
		value, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	return value
}

type generator struct{ *rand.Rand }

// object is a schema or a value.
type object = map[string]any

var fieldNames = []string{"a", "b", "c", "d", "e"}

// scenario returns a change of a definition with one or two versions. Objects are valid under the old definition.
func (g *generator) scenario(t *testing.T, name string) scenario {
	t.Helper()
	v1 := g.objectSchema(3)
	v2 := clone(t, v1)
	s := scenario{name: name, isRandom: true}
	for range 2 {
		s.objects = append(s.objects, text(t, g.value(v1)))
	}
	if g.IntN(2) == 0 {
		s.old = one(text(t, v1))
		g.change(v1)
		s.new = one(text(t, v1))
		return s
	}
	if g.IntN(2) == 0 {
		g.removeField(v2)
	}
	s.old = two(text(t, v1), text(t, v2))
	g.change(v1)
	g.change(v2)
	s.new = two(text(t, v1), text(t, v2))
	s.new.versions[g.IntN(2)].isStorage = true
	return s
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// schema returns a schema without constraints.
func (g *generator) schema(depth int) object {
	kinds := 7
	if depth == 0 {
		kinds = 4
	}
	var s object
	switch g.IntN(kinds) {
	case 0:
		s = object{"type": "integer"}
	case 1, 2:
		s = object{"type": "string"}
	case 3:
		s = object{"type": "boolean"}
	case 4:
		s = object{"type": "array", "items": g.schema(depth - 1)}
	case 5:
		s = object{"type": "object", "additionalProperties": g.schema(depth - 1)}
	default:
		s = g.objectSchema(depth)
	}
	if g.chance(15) {
		s["nullable"] = true
	}
	return s
}

func (g *generator) objectSchema(depth int) object {
	properties := object{}
	for range 1 + g.IntN(4) {
		properties[fieldNames[g.IntN(len(fieldNames))]] = g.schema(depth - 1)
	}
	s := object{"type": "object", "properties": properties}
	if g.chance(15) {
		s["x-kubernetes-preserve-unknown-fields"] = true
	}
	return s
}

// value returns a valid value.
func (g *generator) value(s object) any {
	if s["nullable"] == true && g.chance(30) {
		return nil
	}
	switch s["type"] {
	case "integer":
		return g.IntN(10)
	case "string":
		return []string{"", "red", "blue", "violet"}[g.IntN(4)]
	case "boolean":
		return g.chance(50)
	case "array":
		list := []any{}
		for range g.IntN(4) {
			list = append(list, g.value(s["items"].(object)))
		}
		return list
	}
	fields := object{}
	properties, _ := s["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if g.chance(70) {
			fields[name] = g.value(properties[name].(object))
		}
	}
	if additional, ok := s["additionalProperties"].(object); ok {
		for range g.IntN(3) {
			fields[fieldNames[g.IntN(len(fieldNames))]] = g.value(additional)
		}
	}
	if s["x-kubernetes-preserve-unknown-fields"] == true && g.chance(50) {
		fields["unknown"] = g.IntN(10)
	}
	return fields
}

// change makes up to three random changes.
func (g *generator) change(s object) {
	for range g.IntN(4) {
		g.changeOne(g.choose(s))
	}
}

// choose returns a random schema below s, or s.
func (g *generator) choose(s object) object {
	for {
		var below []object
		properties, _ := s["properties"].(object)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			below = append(below, properties[name].(object))
		}
		for _, name := range []string{"items", "additionalProperties"} {
			if child, ok := s[name].(object); ok {
				below = append(below, child)
			}
		}
		if len(below) == 0 || g.chance(30) {
			return s
		}
		s = below[g.IntN(len(below))]
	}
}

func (g *generator) removeField(s object) {
	properties, _ := s["properties"].(object)
	if names := slices.Sorted(maps.Keys(properties)); len(names) > 1 {
		delete(properties, names[g.IntN(len(names))])
	}
}

func (g *generator) changeOne(s object) {
	if g.chance(15) {
		delete(s, "nullable")
	}
	properties, isObject := s["properties"].(object)
	switch s["type"] {
	case "integer":
		g.set(s, []object{{"maximum": 5}, {"minimum": 3}, {"type": "string"}, {"default": 4}, {"enum": []any{1, 2, 3, 4}}, {"multipleOf": 2}})
	case "string":
		g.set(s, []object{{"maxLength": 3}, {"minLength": 1}, {"pattern": "^[a-q]*$"}, {"default": "red"}, {"enum": []any{"red", "blue"}}, {"type": "boolean"}})
	case "boolean":
		g.set(s, []object{{"default": true}, {"type": "string"}})
	case "array":
		g.set(s, []object{{"maxItems": 1}, {"minItems": 1}, {"x-kubernetes-list-type": "set"}, {"default": []any{}}})
	case "object":
		switch choice := g.IntN(6); {
		case choice == 0 || !isObject:
			g.set(s, []object{{"maxProperties": 1}, {"minProperties": 1}, {"default": object{}}})
		case choice == 1:
			delete(s, "x-kubernetes-preserve-unknown-fields")
		case choice == 2:
			s["required"] = []any{fieldNames[g.IntN(len(fieldNames))]}
		case choice == 3:
			added := g.schema(1)
			g.changeOne(added)
			properties[fieldNames[g.IntN(len(fieldNames))]] = added
		default:
			g.removeField(s)
		}
	}
}

func (g *generator) set(s object, choices []object) { maps.Copy(s, choices[g.IntN(len(choices))]) }

func text(t *testing.T, value any) string {
	t.Helper()
	content, err := json.Marshal(value)
	require.NoError(t, err)
	return string(content)
}

func clone(t *testing.T, value object) (copied object) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text(t, value)), &copied))
	return copied
}
