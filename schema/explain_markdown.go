package schema

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes an explanation as a Markdown page: the description, the constraints, and a table of the fields.
func (e *Explanation) WriteMarkdown(w io.Writer) error {
	var text strings.Builder
	version := code(strings.TrimPrefix(e.Group+"/"+e.Version, "/"))
	if len(e.Path) == 0 {
		fmt.Fprintf(&text, "# %s\n\n%s\n", escapeMarkdown(e.Kind), version)
	} else {
		fmt.Fprintf(&text, "# %s\n\n%s of %s\n", escapeMarkdown(e.Kind+"."+strings.Join(e.Path, ".")), code(e.Type), version)
	}
	for line := range strings.SplitSeq(e.Description, "\n") {
		if line != "" {
			fmt.Fprintf(&text, "\n%s\n", escapeMarkdown(line))
		}
	}
	for i, line := range e.markdownDetails() {
		if i == 0 {
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "- %s\n", line)
	}
	if len(e.Fields) > 0 {
		text.WriteString("\n| field | type | constraints | description |\n|---|---|---|---|\n")
		writeRows(&text, "", e.Fields)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// writeRows writes a row for each field, with its path below the described value.
func writeRows(text *strings.Builder, prefix string, fields []*Field) {
	cell := strings.NewReplacer("|", `\|`, "\n", "<br>")
	for _, field := range fields {
		path := prefix + field.Name
		fmt.Fprintf(text, "| %s | %s | %s | %s |\n", cell.Replace(code(path)), cell.Replace(code(field.Type)),
			cell.Replace(strings.Join(field.markdownDetails(), "\n")), cell.Replace(escapeMarkdown(field.Description)))
		writeRows(text, path+".", field.Fields)
	}
}

// markdownDetails returns the constraints of a field, each as a line.
func (f *Field) markdownDetails() []string {
	var lines []string
	if f.Required {
		lines = append(lines, "required")
	}
	var values []string
	for _, text := range enumTexts(f.Enum) {
		values = append(values, code(text))
	}
	if len(values) > 0 {
		lines = append(lines, "one of "+strings.Join(values, ", "))
	}
	for _, line := range f.details() {
		name, value, hasValue := strings.Cut(line, ": ")
		if hasValue {
			name += ": " + code(value)
		}
		lines = append(lines, name)
	}
	return lines
}

// code returns text as code, between more backticks than are in the text.
func code(text string) string {
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// escapeMarkdown escapes the first characters of emphasis, code, links and HTML.
func escapeMarkdown(text string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "<", "&lt;", "&", "&amp;").Replace(text)
}
