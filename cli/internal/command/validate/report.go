package validate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/unstructured/manifest"
)

// The levels of findings are those of SARIF and of annotations.
const (
	levelError   = "error"
	levelWarning = "warning"
)

const (
	// keywordNoSchema is the keyword of an object without a schema.
	keywordNoSchema = "no-schema"
	// keywordDeprecated is the schema's keyword of a deprecated version or field.
	keywordDeprecated = "deprecated"
)

// report is the result of a validation. Its JSON form is the output format json.
type report struct {
	Objects       int       `json:"objects"`
	Invalid       int       `json:"invalid"`       // on any server
	WithoutSchema int       `json:"withoutSchema"` // on any server
	Findings      []finding `json:"findings"`
	NotChecked    []unknown `json:"notChecked,omitempty"`
	// Servers has the result of each folder of --schemas.
	Servers []serverResult `json:"servers,omitempty"`

	names []string
}

type serverResult struct {
	Name          string `json:"name"`
	Invalid       int    `json:"invalid"`
	WithoutSchema int    `json:"withoutSchema"`
}

// finding is a problem of an object.
type finding struct {
	File    string   `json:"file"`
	Line    int      `json:"line,omitempty"`
	Object  string   `json:"object"` // Deployment "web"
	Level   string   `json:"level"`
	Path    []any    `json:"-"`
	Field   string   `json:"field,omitempty"`
	Keyword string   `json:"keyword"`
	Message string   `json:"message"`
	Hint    string   `json:"hint,omitempty"`
	Servers []string `json:"servers,omitempty"` // nil if it holds for all servers
}

// unknown is an omitted check of a kind's objects.
type unknown struct {
	Kind    string `json:"kind"`
	Objects int    `json:"objects"`
	What    string `json:"what"`
}

// add adds the findings about an object.
func (r *report) add(v *outcome, obj *manifest.Object) {
	r.Objects++
	if r.Servers == nil && len(r.names) > 1 {
		for _, name := range r.names {
			r.Servers = append(r.Servers, serverResult{Name: name})
		}
	}
	if len(v.invalidOn) > 0 {
		r.Invalid++
	}
	if len(v.missingOn) > 0 {
		r.WithoutSchema++
	}
	for i := range r.Servers {
		one := &r.Servers[i]
		if slices.Contains(v.invalidOn, one.Name) {
			one.Invalid++
		}
		if slices.Contains(v.missingOn, one.Name) {
			one.WithoutSchema++
		}
	}
	first := len(r.Findings)
	for _, f := range v.findings {
		f.File = obj.Source
		f.Line = obj.FieldLine(f.Path...)
		f.Object = obj.GetKind() + " " + strconv.Quote(obj.GetName())
		if len(f.Servers) == len(r.names) {
			f.Servers = nil
		}
		r.Findings = append(r.Findings, f)
	}
	slices.SortStableFunc(r.Findings[first:], func(a, b finding) int { return cmp.Compare(a.Line, b.Line) })
	for _, what := range v.notChecked {
		r.addUnknown(obj.GetKind()+" of "+obj.GetAPIVersion(), what)
	}
}

func (r *report) addUnknown(kind, what string) {
	for i := range r.NotChecked {
		if one := &r.NotChecked[i]; one.Kind == kind && one.What == what {
			one.Objects++
			return
		}
	}
	r.NotChecked = append(r.NotChecked, unknown{kind, 1, what})
}

// writers are the output formats.
func writers() map[string]func(io.Writer, *report) error {
	return map[string]func(io.Writer, *report) error{"text": writeText, "json": writeJSON, "sarif": writeSARIF, "github": writeGitHub}
}

// text returns the finding without its position: spec.replicas: is "3", the schema says an integer (write 3 without quotes).
func (f *finding) text() string {
	problem := schema.Problem{Path: f.Path, Message: f.Message, Hint: f.Hint}
	text := problem.String()
	if len(f.Servers) > 0 {
		text += " [" + strings.Join(f.Servers, ", ") + "]"
	}
	return text
}

// position returns the file and line: web.yaml:12.
func (f *finding) position() string {
	if f.Line == 0 {
		return f.File
	}
	return f.File + ":" + strconv.Itoa(f.Line)
}

func writeText(w io.Writer, r *report) error {
	var b strings.Builder
	for _, f := range r.Findings {
		level := ""
		if f.Level == levelWarning {
			level = "warning: "
		}
		fmt.Fprintln(&b, printable.Line(f.position()+": "+f.Object+": "+level+f.text()))
	}
	for i, what := range r.NotChecked {
		if !slices.ContainsFunc(r.NotChecked[:i], func(one unknown) bool { return one.What == what.What }) {
			fmt.Fprintln(&b, printable.Line("not checked of "+strings.Join(r.kindsOf(what.What), ", ")+": "+what.What))
		}
	}
	fmt.Fprintln(&b, r.summary())
	for _, one := range r.Servers {
		fmt.Fprintln(&b, printable.Line(one.Name+": "+summaryText(r.Objects, one.Invalid, one.WithoutSchema)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// kindsOf returns the kinds of which something was not checked.
func (r *report) kindsOf(what string) (kinds []string) {
	for _, one := range r.NotChecked {
		if one.What == what {
			kinds = append(kinds, one.Kind)
		}
	}
	return kinds
}

func (r *report) summary() string { return summaryText(r.Objects, r.Invalid, r.WithoutSchema) }

// summaryText returns a summary: 3 objects: 1 not valid, 1 without a schema.
func summaryText(objects, invalid, withoutSchema int) string {
	var parts []string
	if invalid > 0 {
		parts = append(parts, strconv.Itoa(invalid)+" not valid")
	}
	if withoutSchema > 0 {
		parts = append(parts, strconv.Itoa(withoutSchema)+" without a schema")
	}
	if len(parts) == 0 {
		return count(objects, "object") + ": valid"
	}
	return count(objects, "object") + ": " + strings.Join(parts, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func writeJSON(w io.Writer, r *report) error {
	if r.Findings == nil {
		r.Findings = []finding{}
	}
	return encodeJSON(w, r)
}

func encodeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// writeGitHub writes workflow commands: https://docs.github.com/actions/reference/workflow-commands-for-github-actions.
func writeGitHub(w io.Writer, r *report) error {
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	message := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "::%s file=%s", f.Level, property.Replace(f.File))
		if f.Line > 0 {
			fmt.Fprintf(&b, ",line=%d", f.Line)
		}
		fmt.Fprintf(&b, ",title=%s::%s\n", property.Replace(f.Object), message.Replace(f.text()))
	}
	for _, what := range r.NotChecked {
		fmt.Fprintf(&b, "::notice title=%s::not checked: %s\n", property.Replace(what.Kind), message.Replace(what.What))
	}
	_, err := io.WriteString(w, b.String()+r.summary()+"\n")
	return err
}
