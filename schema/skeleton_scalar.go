package schema

import (
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// formatExamples are valid texts of formats.
var formatExamples = map[string]string{
	"date-time": "2030-01-01T00:00:00Z", "date": "2030-01-01", "duration": "1h", "byte": "ZXhhbXBsZQ==", "uuid": "00000000-0000-4000-8000-000000000000",
	"email": "user@example.com", "hostname": "example.com", "uri": "https://example.com", "ipv4": "192.0.2.1", "ip": "192.0.2.1",
	"ipv6": "2001:db8::1", "cidr": "192.0.2.0/24", "mac": "00:00:5e:00:53:01",
}

// maxExample bounds the characters of an example text.
const maxExample = 4096

// scalar returns a value that a schema of a scalar accepts, as far as it can be found.
func (b *skeletonBuilder) scalar(name string, s *Schema) any {
	for i, part := range s.allParts() {
		if i > 0 && part.Type == "" {
			continue
		}
		if value, isScalar := b.scalarOf(name, part); isScalar {
			return value
		}
	}
	return map[string]any{}
}

// scalarOf is scalar without the parts of s.
func (b *skeletonBuilder) scalarOf(name string, s *Schema) (value any, isScalar bool) {
	switch {
	case len(s.Enum) > 0:
		return s.Enum[0], true
	case s.IntOrString, s.Type == "integer":
		return int64(s.smallest()), true
	case s.Type == "number":
		return s.smallest(), true
	case s.Type == "boolean":
		return false, true
	case s.Type == "string":
		return b.text(name, s), true
	default:
		return nil, false
	}
}

// smallest returns the smallest valid number from 1 on, or else the largest integer below it, or else the middle of the bounds.
func (s *Schema) smallest() float64 {
	n := 1.0
	if s.Minimum != nil {
		n = math.Max(n, math.Ceil(*s.Minimum))
		if s.ExclusiveMinimum && n == *s.Minimum {
			n++
		}
	}
	if s.MultipleOf != nil && *s.MultipleOf > 0 {
		n = math.Ceil(n / *s.MultipleOf) * *s.MultipleOf
	}
	if s.Maximum == nil || s.isBelowMaximum(n) {
		return n
	}
	n = math.Floor(*s.Maximum)
	if !s.isBelowMaximum(n) {
		n--
	}
	if s.MultipleOf != nil && *s.MultipleOf > 0 {
		n = math.Floor(n / *s.MultipleOf) * *s.MultipleOf
	}
	if s.Minimum != nil && (n < *s.Minimum || s.ExclusiveMinimum && n == *s.Minimum) {
		n = (*s.Minimum + *s.Maximum) / 2
	}
	return n
}

func (s *Schema) isBelowMaximum(n float64) bool {
	return n < *s.Maximum || !s.ExclusiveMaximum && n == *s.Maximum
}

// text returns a text of a string field. It has at least s.MinLength characters, unless that is more than maxExample.
func (b *skeletonBuilder) text(name string, s *Schema) string {
	text, found := formatExamples[s.Format]
	if strings.HasSuffix(s.Name, ".MicroTime") {
		text = "2030-01-01T00:00:00.000000Z"
	}
	if !found {
		text = "example"
		if name == "name" && b.name != "" {
			text = b.name
		}
	}
	if s.Pattern != "" {
		text = s.matching(text)
	}
	if count := utf8.RuneCountInString(text); s.MinLength != nil && *s.MinLength > int64(count) && *s.MinLength <= maxExample {
		text += strings.Repeat("x", int(*s.MinLength)-count)
	}
	if s.MaxLength != nil && *s.MaxLength >= 0 && int64(utf8.RuneCountInString(text)) > *s.MaxLength {
		text = string([]rune(text)[:*s.MaxLength])
	}
	return text
}

// matching returns a text that matches the pattern: the given one, or a short one made from the pattern.
func (s *Schema) matching(text string) string {
	pattern, err := regexp.Compile(s.Pattern)
	if err != nil || pattern.MatchString(text) {
		return text
	}
	tree, err := syntax.Parse(s.Pattern, syntax.Perl)
	if err != nil {
		return text
	}
	for _, repeats := range []int{0, 1, 2} { // of what may be left out
		if made := shortest(tree, repeats, 0); pattern.MatchString(made) && (s.MinLength == nil || int64(len(made)) >= *s.MinLength) {
			return made
		}
	}
	return text
}

// maxPatternDepth bounds expressions nested in each other.
const maxPatternDepth = 50

// shortest returns a text of an expression, with as many repeats as given of what may be repeated any number of times.
func shortest(e *syntax.Regexp, repeats, depth int) string {
	if depth > maxPatternDepth {
		return ""
	}
	part := func(i int) string { return shortest(e.Sub[i], repeats, depth+1) }
	switch e.Op {
	case syntax.OpLiteral:
		return string(e.Rune)
	case syntax.OpCharClass:
		return string(classRune(e.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "a"
	case syntax.OpCapture:
		return part(0)
	case syntax.OpStar:
		return repeat(part(0), repeats)
	case syntax.OpQuest:
		return repeat(part(0), min(repeats, 1))
	case syntax.OpPlus:
		return repeat(part(0), max(repeats, 1))
	case syntax.OpRepeat:
		count := max(e.Min, repeats)
		if e.Max >= 0 {
			count = min(count, e.Max)
		}
		return repeat(part(0), count)
	case syntax.OpConcat:
		var text strings.Builder
		for i := range e.Sub {
			text.WriteString(part(i))
		}
		return text.String()
	case syntax.OpAlternate:
		return part(0)
	default: // anchors and the empty expression
		return ""
	}
}

// repeat returns text count times, or once if that is longer than maxExample: repeats may be nested.
func repeat(text string, count int) string {
	if count*len(text) > maxExample {
		return text
	}
	return strings.Repeat(text, count)
}

// classRune returns a rune of a character class: a letter or digit if there is one. ranges are pairs of bounds.
func classRune(ranges []rune) rune {
	for _, r := range "aA1" {
		for pair := range slices.Chunk(ranges, 2) {
			if pair[0] <= r && r <= pair[1] {
				return r
			}
		}
	}
	if len(ranges) == 0 {
		return 'a'
	}
	return ranges[0]
}
