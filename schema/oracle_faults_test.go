package schema_test

import (
	"maps"
	"slices"
	"strings"

	"github.com/anykind/anykind/schema"
)

// site is a place of an object at which a fault of a keyword may be made.
type site struct {
	path   []any
	schema *schema.Schema // of the value at path
}

// sites returns the sites of each keyword in an object, in a fixed order.
func sites(obj map[string]any, s *schema.Schema) map[string][]site {
	found := map[string][]site{}
	collect(found, obj, s, nil)
	return found
}

func collect(found map[string][]site, value any, s *schema.Schema, path []any) {
	add := func(keyword string, is bool) {
		if is {
			found[keyword] = append(found[keyword], site{slices.Clone(path), s})
		}
	}
	switch len(path) {
	case 0:
		found["metadata"] = append(found["metadata"], site{nil, s})
	default:
		add("type", true)
		add("null", true)
		add("remove", true)
		add("default", s.Default != nil)
	}
	add("enum", len(s.Enum) > 0)
	add("allOf", len(s.AllOf) > 0)
	add("anyOf", len(s.AnyOf) > 0)
	add("oneOf", len(s.OneOf) > 0)
	add("not", s.Not != nil)
	switch value := value.(type) {
	case map[string]any:
		add("required", len(s.Required) > 0)
		add("minProperties", s.MinProperties != nil)
		add("maxProperties", s.MaxProperties != nil)
		add("unknown", true)
		add("preserve", s.PreserveUnknownFields)
		add("embedded", s.EmbeddedResource)
		collectFields(found, value, s, path)
	case []any:
		add("minItems", s.MinItems != nil)
		add("maxItems", s.MaxItems != nil)
		add("set", s.ListType == "set")
		add("map", s.ListType == "map")
		if items := s.Items(); items != nil {
			for i, item := range value {
				collect(found, item, items, append(slices.Clone(path), i))
			}
		}
	case string:
		add("pattern", s.Pattern != "")
		add("format", s.Format != "")
		add("minLength", s.MinLength != nil)
		add("maxLength", s.MaxLength != nil)
		add("intOrString", s.IntOrString)
	case int64, float64:
		add("number format", s.Format != "")
		add("minimum", s.Minimum != nil)
		add("maximum", s.Maximum != nil)
		add("multipleOf", s.MultipleOf != nil)
		add("intOrString", s.IntOrString)
	}
}

func collectFields(found map[string][]site, obj map[string]any, s *schema.Schema, path []any) {
	for _, name := range slices.Sorted(maps.Keys(obj)) {
		if (len(path) == 0 || s.EmbeddedResource) && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		field := s.Field(name)
		if field == nil {
			field, _ = s.Values()
		}
		if field != nil {
			collect(found, obj[name], field, append(slices.Clone(path), name))
		}
	}
}

// anyValues are values of all types.
var anyValues = []any{
	"text", "", "5", "true", int64(5), int64(-1), 1.5, true, false, []any{}, []any{"a"}, map[string]any{}, map[string]any{"a": "b"}, nil,
	int64(3_000_000_000), 1e300,
}

var anyTexts = []string{
	"", "a", "UPPER", "!", " ", "a b", "-a", "a-", "a.b", "a/b", "1", "-1", "10.0.0.1", "10.0.0.0/8", "fd00::1", "fd00::/8", "010.0.0.1", "300.0.0.1", "10.0.0.0/33",
	"https://example.com", "example.com", "/path", "a@example.com", "@", "1h", "1h30m", "3 days", "2026-01-02", "2026-01-02T03:04:05Z", "2026-01-02T25:04:05Z", "2026-01-02t03:04:05+99:99",
	"2026-13-02T03:04:05Z", "2026-01-02T03:04:05.123456Z", "aGVsbG8=", "aGVsbG8", "aGVs\nbG8=", "%%%", "123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000",
	"123e4567", "01:23:45:67:89:ab", "#aabbcc", "äöü", "日本語", "10Gi", "5m", "100%", "50", "*", "www.example.com", "-example.com", "a..b", "localhost", "a_b", "x.y1", "(a)", strings.Repeat("long", 100),
}

// faulty returns a value for a site, by keyword. isRemoved removes the value.
func (g generator) faulty(keyword string, at site, value any) (changed any, isRemoved bool) {
	s := at.schema
	switch keyword {
	case "type", "intOrString":
		return anyValues[g.IntN(len(anyValues))], false
	case "null":
		return nil, false
	case "remove":
		return nil, true
	case "default":
		return nil, g.chance(2)
	case "enum":
		return []any{s.Enum[g.IntN(len(s.Enum))], "other", "", int64(1), nil, s.Enum[0]}[g.IntN(6)], false
	case "pattern", "format":
		return anyTexts[g.IntN(len(anyTexts))], false
	case "minLength":
		return strings.Repeat([]string{"a", "ä", "日"}[g.IntN(3)], max(0, int(*s.MinLength)-g.IntN(3)+1)), false
	case "maxLength":
		return strings.Repeat([]string{"a", "ä", "日"}[g.IntN(3)], min(int(*s.MaxLength), 70_000)+g.IntN(3)-1), false
	case "number format":
		return []any{int64(1 << 31), int64(1<<31 - 1), int64(-1 << 31), int64(-1<<31 - 1), 1e10, 1.5, 1e40, -1e300, 9.3e18}[g.IntN(9)], false
	case "minimum":
		return g.aroundBound(*s.Minimum), false
	case "maximum":
		return g.aroundBound(*s.Maximum), false
	case "multipleOf":
		return g.aroundBound(*s.MultipleOf * float64(g.IntN(5))), false
	case "minItems":
		items := value.([]any)
		return items[:min(len(items), max(0, int(*s.MinItems)-g.IntN(2)))], false
	case "maxItems":
		return g.repeated(value.([]any), s, min(int(*s.MaxItems), 500)+g.IntN(2)), false
	case "set", "map":
		return g.withDuplicate(value.([]any), s), false
	}
	obj, isObject := value.(map[string]any)
	if !isObject { // of a scalar with allOf, anyOf, oneOf or not
		return anyTexts[g.IntN(len(anyTexts))], false
	}
	obj = maps.Clone(obj)
	g.faultyObject(keyword, s, obj)
	return obj, false
}

// aroundBound returns a number at or next to a bound.
func (g generator) aroundBound(bound float64) any {
	n := int64(max(min(bound, 1e15), -1e15))
	return []any{n, n - 1, n + 1, float64(n) + 0.5, float64(n) - 0.5, bound}[g.IntN(6)]
}

func (g generator) repeated(items []any, s *schema.Schema, count int) []any {
	repeated := slices.Clone(items)
	for len(repeated) < count {
		repeated = append(repeated, g.value(s.Items(), 1))
	}
	return repeated
}

// withDuplicate adds an item: a copy, one with the same key, or a new one.
func (g generator) withDuplicate(items []any, s *schema.Schema) []any {
	if len(items) == 0 || g.chance(4) {
		return append(slices.Clone(items), g.value(s.Items(), 1))
	}
	one := items[g.IntN(len(items))]
	if obj, isObject := one.(map[string]any); isObject && g.chance(2) {
		changed := maps.Clone(obj)
		for _, name := range slices.Sorted(maps.Keys(changed)) {
			if !slices.Contains(s.ListMapKeys, name) || g.chance(4) {
				delete(changed, name)
			}
		}
		one = changed
	}
	return append(slices.Clone(items), one)
}

// faultyObject changes an object.
func (g generator) faultyObject(keyword string, s *schema.Schema, obj map[string]any) {
	names := slices.Sorted(maps.Keys(obj))
	switch keyword {
	case "required":
		delete(obj, s.Required[g.IntN(len(s.Required))])
	case "minProperties":
		for _, name := range names {
			if int64(len(obj)) >= *s.MinProperties || g.chance(3) {
				delete(obj, name)
			}
		}
	case "maxProperties":
		for i := 0; int64(len(obj)) <= *s.MaxProperties && i < 200; i++ {
			g.addField(s, obj)
		}
	case "unknown":
		g.addUnknown(names, obj)
	case "preserve":
		obj["unknown"] = map[string]any{"a": []any{int64(1), map[string]any{"b": nil}}}
		if len(names) > 0 {
			if inner, isObject := obj[names[g.IntN(len(names))]].(map[string]any); isObject {
				changed := maps.Clone(inner)
				changed["unknown"] = "x"
				obj[names[g.IntN(len(names))]] = changed
			}
		}
	case "embedded":
		g.faultyEmbedded(obj)
	default: // allOf, anyOf, oneOf, not
		if len(names) > 0 && g.chance(2) {
			delete(obj, names[g.IntN(len(names))])
		} else {
			g.addField(s, obj)
		}
	}
}

// addField adds a field that the schema has, or a key.
func (g generator) addField(s *schema.Schema, obj map[string]any) {
	var names []string
	for name := range s.Fields() {
		if obj[name] == nil {
			names = append(names, name)
		}
	}
	values, isMap := s.Values()
	switch {
	case len(names) > 0:
		name := names[g.IntN(len(names))]
		obj[name] = g.value(s.Field(name), 2)
	case isMap && values != nil:
		obj["more"+strings.Repeat("x", len(obj))] = g.value(values, 2)
	}
}

// addUnknown adds an unknown field, or misspells one.
func (g generator) addUnknown(names []string, obj map[string]any) {
	if len(names) == 0 || g.chance(2) {
		obj["unknownField"] = anyValues[g.IntN(len(anyValues))]
		return
	}
	name := names[g.IntN(len(names))]
	value := obj[name]
	delete(obj, name)
	obj[[]string{strings.ToUpper(name[:1]) + name[1:], name + "s", name[:len(name)-1], name}[g.IntN(4)]] = value
}

func (g generator) faultyEmbedded(obj map[string]any) {
	switch g.IntN(6) {
	case 0:
		delete(obj, []string{"apiVersion", "kind", "metadata"}[g.IntN(3)])
	case 1:
		obj["apiVersion"] = []any{"", "a/b/c", "v1", int64(1), nil, "apps/v1"}[g.IntN(6)]
	case 2:
		obj["kind"] = []any{"", "Wid get", "widget", int64(1), nil, "W.x"}[g.IntN(6)]
	case 3:
		obj["metadata"] = []any{"x", map[string]any{}, map[string]any{"unknown": "x"}, map[string]any{"name": int64(1)}, nil, map[string]any{"name": "a/b"}}[g.IntN(6)]
	default:
		obj["metadata"] = g.faultyMeta()
	}
}

// faultyMeta returns metadata with a name, in most cases with a fault.
func (g generator) faultyMeta() map[string]any {
	metadata := map[string]any{"name": "faulty"}
	values := map[string][]any{
		"name":              {"Upper", "a.b", "a_b", strings.Repeat("a", 254), "", "-a", "ok", int64(1), nil},
		"generateName":      {"a-", "A-", "a.", "", "a_", int64(1)},
		"labels":            {map[string]any{"a b": "c"}, map[string]any{"a": "b c"}, map[string]any{"a/b/c": ""}, map[string]any{"a": int64(1)}, map[string]any{"a": nil}, map[string]any{"example.com/a": "b"}, "x", map[string]any{"a": strings.Repeat("b", 64)}, map[string]any{"a": true}},
		"annotations":       {map[string]any{"a b": "c"}, map[string]any{"A": "b c"}, map[string]any{"a": int64(1)}, map[string]any{"a": strings.Repeat("x", 300_000)}, nil},
		"unknown":           {"x", nil},
		"creationTimestamp": {nil, "2026-01-02T03:04:05Z", "yesterday", int64(1)},
		"finalizers":        {[]any{"example.com/a"}, []any{}, []any{int64(1)}, []any{nil}, []any{"not a name"}, []any{"unqualified"}, []any{"orphan", "foregroundDeletion"}},
		"ownerReferences":   {[]any{}, []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}}, []any{map[string]any{"apiVersion": "v1"}}, []any{map[string]any{"unknown": "v1"}}, []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b", "controller": "x"}}, []any{map[string]any{"apiVersion": "a/b/c", "kind": "Pod", "name": "a", "uid": "b"}}, []any{map[string]any{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "b"}}, []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b", "controller": true}, map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "c", "uid": "d", "controller": true}}},
		"generation":        {int64(1), "1", 1.5},
	}
	names := slices.Sorted(maps.Keys(values))
	name := names[g.IntN(len(names))]
	metadata[name] = values[name][g.IntN(len(values[name]))]
	return metadata
}

// replaced returns a copy of a value with another value at a path. Maps and lists off the path are shared.
func replaced(value any, path []any, change func(any) (any, bool)) any {
	if len(path) == 0 {
		changed, _ := change(value)
		return changed
	}
	switch step := path[0].(type) {
	case string:
		obj := maps.Clone(value.(map[string]any))
		if len(path) == 1 {
			changed, isRemoved := change(obj[step])
			if obj[step] = changed; isRemoved {
				delete(obj, step)
			}
			return obj
		}
		obj[step] = replaced(obj[step], path[1:], change)
		return obj
	case int:
		items := slices.Clone(value.([]any))
		if len(path) == 1 {
			changed, isRemoved := change(items[step])
			if isRemoved {
				return slices.Delete(items, step, step+1)
			}
			items[step] = changed
			return items
		}
		items[step] = replaced(items[step], path[1:], change)
		return items
	}
	return value
}
