package schema

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
)

const (
	textWidth     = 76 // of descriptions
	maxShownEnums = 4  // of a field in a list
)

// TextOptions are the options of [Explanation.WriteText].
type TextOptions struct {
	// Details adds what kubectl does not print: immutable and deprecated fields, defaults and constraints.
	Details bool
}

// WriteText writes an explanation as kubectl explain prints it. A recursive explanation has no descriptions of fields.
func (e *Explanation) WriteText(w io.Writer, opts *TextOptions) error {
	t := &textWriter{isShort: e.recursive}
	if opts != nil {
		t.TextOptions = *opts
	}
	if e.Group != "" {
		t.printf("GROUP:      %s\n", e.Group)
	}
	t.printf("KIND:       %s\nVERSION:    %s\n\n", e.Kind, e.Version)
	if len(e.Path) > 0 {
		t.printf("FIELD: %s <%s>\n", e.Name, e.Type)
		t.section("ENUM:", enumTexts(e.Enum))
	}
	details := t.detailsOf(&e.Field)
	t.section("DETAILS:", details)
	if len(e.Path) > 0 || len(details) > 0 {
		t.printf("\n")
	}
	if len(e.Path) > 0 && len(e.Enum) == 0 && len(details) == 0 {
		t.printf("\n")
	}
	description := "<empty>"
	if e.Description != "" {
		description = e.Description + "\n"
	}
	t.printf("DESCRIPTION:\n%s\n", indent(wrap(description, textWidth), 4))
	if len(e.Fields) > 0 {
		t.printf("FIELDS:\n")
		t.fields(e.Fields, 2)
	}
	t.printf("\n")
	_, err := io.WriteString(w, t.text.String())
	return err
}

type textWriter struct {
	TextOptions
	isShort bool // without descriptions
	text    strings.Builder
}

func (t *textWriter) printf(format string, values ...any) { fmt.Fprintf(&t.text, format, values...) }

// section writes indented lines below a heading.
func (t *textWriter) section(heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	t.printf("%s\n", heading)
	for _, line := range lines {
		t.printf("    %s\n", line)
	}
}

// fields writes fields with their fields. margin is the number of spaces before a name.
func (t *textWriter) fields(fields []*Field, margin int) {
	spaces := strings.Repeat(" ", margin)
	for _, field := range fields {
		t.printf("%s%s\t<%s>", spaces, field.Name, field.Type)
		if field.Required {
			t.printf(" -required-")
		}
		if enum := enumTexts(field.Enum); len(enum) > maxShownEnums {
			t.printf("\n%senum: %s, ....", spaces, strings.Join(enum[:maxShownEnums], ", "))
		} else if len(enum) > 0 {
			t.printf("\n%senum: %s", spaces, strings.Join(enum, ", "))
		}
		t.printf("\n")
		for _, line := range t.detailsOf(field) {
			t.printf("%s%s\n", spaces, line)
		}
		if !t.isShort {
			description := field.Description
			if description == "" {
				description = "<no description>"
			}
			t.printf("%s\n\n", indent(wrap(description, textWidth+2-margin), margin+2))
		}
		t.fields(field.Fields, margin+2)
	}
}

// detailsOf returns lines about a field that kubectl does not print.
func (t *textWriter) detailsOf(field *Field) []string {
	if !t.Details {
		return nil
	}
	return field.details()
}

// details returns lines with the deprecation, the default and the constraints of a field.
func (f *Field) details() []string {
	var lines []string
	if f.Deprecated != "" {
		lines = append(lines, "deprecated: "+strings.TrimPrefix(f.Deprecated, "Deprecated: "))
	}
	if f.Immutable {
		lines = append(lines, "immutable")
	}
	if f.Default != nil {
		lines = append(lines, "default: "+compact(f.Default))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Constraints)) {
		switch value := f.Constraints[name].(type) {
		case []Rule:
			for _, rule := range value {
				lines = append(lines, name+": "+rule.String())
			}
		case []string:
			lines = append(lines, name+": "+strings.Join(value, ", "))
		case string:
			lines = append(lines, name+": "+value)
		default:
			lines = append(lines, name+": "+compact(value))
		}
	}
	return lines
}

// String returns the rule on a single line, with its message in parentheses.
func (r Rule) String() string {
	text := singleLine(r.Rule)
	switch {
	case r.MessageExpression != "":
		return text + " (message: " + singleLine(r.MessageExpression) + ")"
	case r.Message != "":
		return text + " (" + singleLine(r.Message) + ")"
	}
	return text
}

func singleLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// compact returns JSON on a single line.
func compact(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// enumTexts returns the values of an enum as kubectl prints them.
func enumTexts(enum []any) []string {
	var texts []string
	for _, value := range enum {
		text := fmt.Sprint(value)
		switch value {
		case nil:
			text = "<no value>"
		case "":
			text = `""`
		}
		texts = append(texts, text)
	}
	return texts
}

// indent indents every line, also empty lines.
func indent(text string, count int) string {
	spaces := strings.Repeat(" ", count)
	return spaces + strings.ReplaceAll(text, "\n", "\n"+spaces)
}

// wrap breaks lines of more than width characters at white space. Longer words stay whole. White space at a break is removed.
func wrap(text string, width int) string {
	var wrapped strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			wrapped.WriteByte('\n')
		}
		wrapLine(&wrapped, []rune(line), width)
	}
	return wrapped.String()
}

func wrapLine(wrapped *strings.Builder, line []rune, width int) {
	column := 0
	for len(line) > 0 {
		spaces := line[:length(line, isBreakable)]
		line = line[len(spaces):]
		word := line[:length(line, func(r rune) bool { return !isBreakable(r) })]
		line = line[len(word):]
		switch column += len(spaces); {
		case len(word) == 0 && column > width: // spaces at the end
			return
		case column+min(len(word), width-1) > width:
			wrapped.WriteByte('\n')
			column = 0
		default:
			wrapped.WriteString(string(spaces))
		}
		wrapped.WriteString(string(word))
		column += len(word)
	}
}

// length returns the number of leading characters of a class.
func length(line []rune, isIn func(rune) bool) int {
	if at := slices.IndexFunc(line, func(r rune) bool { return !isIn(r) }); at >= 0 {
		return at
	}
	return len(line)
}

func isBreakable(r rune) bool {
	const noBreakSpace = '\u00a0'
	return unicode.IsSpace(r) && r != noBreakSpace
}
