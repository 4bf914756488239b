package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/anykind/anykind/internal/sanitize"
)

// violation returns the message and hint of a value that violates a keyword.
func violation(keyword string, s *Schema, value any) (message, hint string) {
	switch keyword {
	case "type":
		return "is " + quoted(value) + ", the schema says " + s.typeText(), typeHint(s, value)
	case "enum":
		return "is " + quoted(value) + ", the schema says one of " + enumText(s.Enum), enumHint(s.Enum, value)
	case "pattern":
		return "is " + quoted(value) + ", the schema says a string that matches " + shortened(s.Pattern), ""
	case "format":
		return "is " + quoted(value) + ", the schema says " + s.Format, formatHint(s.Format)
	case "minimum", "maximum", "multipleOf":
		return "is " + quoted(value) + ", the schema says " + s.boundText(keyword), ""
	}
	return fmt.Sprintf("has %s, the schema says %s", count(value, keyword), s.boundText(keyword)), ""
}

// boundText returns a bound of the schema: at least 1.
func (s *Schema) boundText(keyword string) string {
	switch keyword {
	case "minimum":
		return exclusively("at least ", "more than ", s.ExclusiveMinimum) + number64(*s.Minimum)
	case "maximum":
		return exclusively("at most ", "less than ", s.ExclusiveMaximum) + number64(*s.Maximum)
	case "multipleOf":
		return "a multiple of " + number64(*s.MultipleOf)
	case "minLength":
		return "at least " + strconv.FormatInt(*s.MinLength, 10)
	case "maxLength":
		return "at most " + strconv.FormatInt(*s.MaxLength, 10)
	case "minItems":
		return "at least " + strconv.FormatInt(*s.MinItems, 10)
	case "maxItems":
		return "at most " + strconv.FormatInt(*s.MaxItems, 10)
	case "minProperties":
		return "at least " + strconv.FormatInt(*s.MinProperties, 10)
	default:
		return "at most " + strconv.FormatInt(*s.MaxProperties, 10)
	}
}

func exclusively(inclusive, exclusive string, isExclusive bool) string {
	if isExclusive {
		return exclusive
	}
	return inclusive
}

func number64(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// count returns the length of a value, with its unit.
func count(value any, keyword string) string {
	switch value := value.(type) {
	case string:
		return plural(utf8.RuneCountInString(value), "character")
	case []any:
		return plural(len(value), "item")
	case map[string]any:
		return plural(len(value), "field")
	}
	return keyword
}

func plural(count int, what string) string {
	if count == 1 {
		return "1 " + what
	}
	return strconv.Itoa(count) + " " + what + "s"
}

// typeHint says how to write a value in a type.
func typeHint(s *Schema, value any) string {
	text, isText := value.(string)
	switch {
	case isText && (s.Type == "integer" || s.Type == "number" || s.Type == "boolean"):
		if parsed, err := s.ParseValue(text); err == nil {
			return fmt.Sprintf("write %v without quotes", parsed)
		}
	case s.Type == "string" && value != nil:
		switch value.(type) {
		case bool, int64, float64:
			return fmt.Sprintf(`write "%v" in quotes`, value)
		}
	case s.Type == "array" && value != nil:
		if items := s.Items(); items != nil && items.Type == jsonType(value) {
			return "write a list with the value as its item"
		}
	case value == nil:
		return "omit the field"
	}
	return ""
}

// maxListed bounds the values or fields in a text.
const maxListed = 16

func enumText(enum []any) string {
	var texts []string
	for _, one := range enum[:min(len(enum), maxListed)] {
		text, err := json.Marshal(one)
		if err != nil {
			text = []byte(fmt.Sprint(one))
		}
		texts = append(texts, string(text))
	}
	if len(enum) > maxListed {
		texts = append(texts, "…")
	}
	return sanitize.Join(texts, maxError)
}

// enumHint suggests a value of an enum.
func enumHint(enum []any, value any) string {
	text, isText := value.(string)
	if !isText {
		return ""
	}
	names := &Schema{properties: map[string]*Schema{}}
	for _, one := range enum {
		if name, ok := one.(string); ok {
			names.properties[name] = nil
		}
	}
	return suggestionText(names.suggest(text))
}

func suggestionText(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "did you mean " + sanitize.Join(names, maxError) + "?"
}

// unknownHint suggests a field in place of an unknown field: a similar name, or the same name further down.
func (s *Schema) unknownHint(name string) string {
	if s == nil {
		return "the schema describes no fields here"
	}
	if names := s.suggest(name); len(names) > 0 {
		return suggestionText(names)
	}
	if path := s.findBelow(name); path != "" {
		return "did you mean " + path + "?"
	}
	switch count := len(s.properties); {
	case count == 0:
		return "the schema describes no fields here"
	case count > maxListed:
		return ""
	}
	return "the fields are " + sanitize.Join(slices.Sorted(maps.Keys(s.properties)), maxError)
}

const (
	maxDepthBelow  = 4    // of a field in a hint
	maxSchemasRead = 2000 // for a hint
)

// findBelow returns the path of the nearest field of a name below s, or "".
func (s *Schema) findBelow(name string) string {
	type place struct {
		path  string
		s     *Schema
		depth int
	}
	places := []place{{"", s, 0}}
	for read := 0; read < len(places) && read < maxSchemasRead; read++ {
		at := places[read]
		if at.depth == maxDepthBelow {
			break
		}
		for field, child := range at.s.Fields() {
			path := strings.TrimPrefix(at.path+"."+field, ".")
			if items := child.Items(); items != nil {
				child = items
				path += "[]"
			}
			if child.properties[name] != nil {
				return path + "." + name
			}
			places = append(places, place{path, child, at.depth + 1})
		}
	}
	return ""
}

// deprecationOf returns the sentence of a description about the deprecation of a field or a kind, or "". A following sentence that
// begins with Use names the replacement.
func deprecationOf(description string) string {
	at := strings.Index(description, "Deprecated: ")
	if at < 0 {
		if !strings.EqualFold(description[:min(len(description), len("Deprecated"))], "Deprecated") {
			return ""
		}
		at = 0
	}
	first, _, _ := strings.Cut(description[at:], "\n")
	if sentence, rest, isCut := strings.Cut(first, ". "); isCut && strings.Contains(sentence, " ") {
		first = sentence
		if replacement, _, _ := strings.Cut(rest, ". "); strings.HasPrefix(rest, "Use ") {
			first += ". " + replacement
		}
	}
	return strings.TrimSuffix(sanitize.Text(first, maxError), ".")
}
