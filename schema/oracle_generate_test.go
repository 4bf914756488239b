package schema_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/anykind/anykind/schema"
)

// generator draws objects that are mostly valid by a schema.
type generator struct{ *rand.Rand }

// chance is true once in n times.
func (g generator) chance(n int) bool { return g.IntN(n) == 0 }

// value returns a value of a schema. Optional fields are left out below depth.
func (g generator) value(s *schema.Schema, depth int) any {
	switch {
	case s == nil:
		return "any"
	case len(s.Enum) > 0:
		return s.Enum[g.IntN(len(s.Enum))]
	case s.IntOrString:
		if s.Pattern != "" {
			return g.text(s)
		}
		return []any{int64(5), "50%"}[g.IntN(2)]
	}
	switch s.Type {
	case "object":
		return g.object(s, depth)
	case "array":
		return g.list(s, depth)
	case "integer":
		return g.integer(s)
	case "number":
		if g.chance(2) && s.Minimum == nil && s.Maximum == nil {
			return 2.5
		}
		return g.integer(s)
	case "boolean":
		return g.chance(2)
	case "string":
		return g.text(s)
	}
	return map[string]any{"free": "value"}
}

const manyFields = 30 // of which an object has few

func (g generator) object(s *schema.Schema, depth int) map[string]any {
	obj := map[string]any{}
	if s.EmbeddedResource {
		obj["apiVersion"] = "v1"
		obj["kind"] = "Widget"
		obj["metadata"] = map[string]any{"name": "widget", "labels": map[string]any{"a": "b"}}
	}
	oneIn := 2
	if len(maps.Collect(s.Fields())) > manyFields {
		oneIn = 8
	}
	for name, field := range s.Fields() {
		if obj[name] != nil {
			continue
		}
		if slices.Contains(s.Required, name) || depth > 0 && g.chance(oneIn) {
			obj[name] = g.value(field, depth-1)
		}
	}
	if values, isMap := s.Values(); isMap {
		for i := range max(g.IntN(3), int(orZero(s.MinProperties))) {
			if values == nil {
				obj[fmt.Sprintf("key%d", i)] = "any"
			} else {
				obj[fmt.Sprintf("key%d", i)] = g.value(values, depth-1)
			}
		}
	}
	if s.PreserveUnknownFields && g.chance(2) {
		obj["preserved"] = map[string]any{"a": int64(1)}
	}
	return obj
}

func (g generator) list(s *schema.Schema, depth int) []any {
	count := int(orZero(s.MinItems))
	if depth > 0 {
		count = max(count, g.IntN(4))
	}
	if s.MaxItems != nil {
		count = min(count, int(*s.MaxItems))
	}
	items := []any{}
	for i := range count {
		item := g.value(s.Items(), depth-1)
		if text, isText := item.(string); isText && s.ListType == "set" && s.Items().Pattern == "" {
			item = text + strconv.Itoa(i)
		}
		items = append(items, item)
	}
	return items
}

func (g generator) integer(s *schema.Schema) any {
	low := int64(-3)
	high := int64(100)
	if s.Maximum != nil {
		high = int64(*s.Maximum)
		low = min(low, high)
	}
	if s.Minimum != nil {
		low = int64(*s.Minimum)
		high = max(high, low)
	}
	n := low + g.Int64N(min(high-low, 1000)+1)
	if s.MultipleOf != nil {
		n = int64(*s.MultipleOf) * (n / max(int64(*s.MultipleOf), 1))
	}
	return n
}

func (g generator) text(s *schema.Schema) any {
	switch s.Format {
	case "date-time":
		return "2026-01-02T03:04:05Z"
	case "byte":
		return "aGVsbG8="
	case "cidr":
		return "10.0.0.0/8"
	case "uri", "url":
		return "https://example.com/path"
	case "ipv4":
		return "10.0.0.1"
	case "ipv6":
		return "fd00::1"
	case "duration":
		return "1h"
	case "email":
		return "a@example.com"
	case "uuid":
		return "123e4567-e89b-12d3-a456-426614174000"
	case "date":
		return "2026-01-02"
	case "hostname":
		return "www.example.com"
	case "mac":
		return "01:23:45:67:89:ab"
	case "hexcolor":
		return "#aabbcc"
	}
	text := "text"
	if s.Pattern != "" {
		text = g.matching(s.Pattern)
	}
	if s.MinLength != nil {
		for int64(len(text)) < *s.MinLength {
			text += "a"
		}
	}
	if s.MaxLength != nil && s.Pattern == "" {
		text = text[:min(int64(len(text)), *s.MaxLength)]
	}
	return text
}

// matching returns a text that a regular expression matches, unless it has assertions such as \b.
func (g generator) matching(pattern string) string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "text"
	}
	var b strings.Builder
	g.write(&b, parsed)
	return b.String()
}

func (g generator) write(b *strings.Builder, re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(g.runeOf(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			g.write(b, sub)
		}
	case syntax.OpAlternate:
		g.write(b, re.Sub[g.IntN(len(re.Sub))])
	case syntax.OpStar, syntax.OpQuest:
		if g.chance(2) {
			g.write(b, re.Sub[0])
		}
	case syntax.OpPlus:
		g.write(b, re.Sub[0])
	case syntax.OpRepeat:
		for range re.Min {
			g.write(b, re.Sub[0])
		}
	default: // assertions and empty matches
	}
}

// runeOf returns a character of a class: a letter or digit if it has one.
func (g generator) runeOf(class []rune) rune {
	for _, c := range "aA0" {
		for i := 0; i+1 < len(class); i += 2 {
			if class[i] <= c && c <= class[i+1] {
				return c
			}
		}
	}
	return class[0]
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
