package gotemplate_test

import (
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/print/internal/gotemplate"
)

func data() map[string]any {
	return map[string]any{
		"kind": "List", "count": int64(3), "ratio": 1.5, "whole": 2.0, "on": true, "off": false, "empty": "", "none": nil,
		"html": "<a href=\"x\">'&\x00", "js": "it's \"<a>\" = \\ \u2028 é\n",
		"items": []any{
			map[string]any{"metadata": map[string]any{"name": "one", "labels": map[string]any{"b": "2", "a": "1"}}, "spec": map[string]any{"replicas": int64(2)}},
			map[string]any{"metadata": map[string]any{"name": "two"}, "spec": map[string]any{"ports": []any{int64(80), int64(443)}}},
		},
		"nothing": []any{},
		"nested":  []any{[]any{int64(1), "x"}, nil, map[string]any{"k": nil}},
	}
}

// templates are compared with text/template.
var templates = []string{
	"text only", "", "{{.kind}}", "{{.}}", "{{.items}}", "{{.missing}}", "{{.missing.more.still}}", "{{.none}}", "{{.none.more}}", "{{.kind.more}}",
	"{{range .items}}{{.metadata.name}}\n{{end}}", "{{range $i, $e := .items}}{{$i}}={{$e.metadata.name}} {{end}}",
	"{{range .nothing}}x{{else}}empty{{end}}", "{{range .missing}}x{{else}}empty{{end}}", "{{range .none}}x{{else}}empty{{end}}",
	"{{range $k, $v := (index .items 0).metadata.labels}}{{$k}}:{{$v}},{{end}}", "{{range .kind}}{{end}}", "{{range 3}}x{{.}}{{end}}",
	"{{range .items}}{{if eq .metadata.name \"one\"}}{{continue}}{{end}}{{.metadata.name}}{{break}}{{end}}",
	"{{if .on}}yes{{else}}no{{end}}{{if .off}}yes{{else if .count}}count{{end}}{{if .empty}}x{{end}}{{if .nothing}}x{{end}}{{if .missing}}x{{else}}m{{end}}",
	"{{with .items}}{{len .}}{{end}}{{with .missing}}x{{else}}none{{end}}{{with $x := .kind}}{{$x}}{{.}}{{end}}",
	"{{$x := .kind}}{{range .items}}{{$x}}{{$x = .metadata.name}}{{end}}{{$x}}{{$.kind}}",
	"{{len .items}} {{len .kind}} {{len .missing}}", "{{len .count}}", "{{index .items 1 \"spec\" \"ports\" 0}}", "{{index .items 7}}", "{{index .kind 0}}",
	"{{index .items 0 \"nope\"}}", "{{index .items \"x\"}}", "{{slice .kind 1 3}} {{slice .items 1}} {{slice .kind}}", "{{slice .kind 3 1}}", "{{slice .count 1}}",
	"{{printf \"%s-%d-%v-%.2f\" .kind .count .on .ratio}} {{print .kind .count .ratio \"x\" \"y\"}} {{println .kind 1}}", "{{printf .count}}",
	"{{html .html}} {{js .js}} {{urlquery .html}}", "{{.html | html}}", "{{.kind | printf \"%s %s\" \"a\"}}", "{{.kind .count}}", "{{.kind | .count}}",
	"{{eq .kind \"List\"}} {{eq .count 3}} {{eq .count 1 2 3}} {{ne .kind \"x\"}} {{lt .count 4}} {{le .count 3}} {{gt .ratio 1.0}} {{ge .count 3}} {{lt \"a\" \"b\"}}",
	"{{eq .count \"3\"}}", "{{eq .ratio 1}}", "{{eq .none nil}}", "{{eq .items .items}}", "{{lt .on .off}}", "{{lt .count .kind}}", "{{eq .on true}}", "{{eq .kind}}",
	"{{and .on .kind}} {{or .off .kind}} {{not .on}} {{and .off (index .items 9)}} {{or .on (index .items 9)}} {{not .missing}}", "{{and}}",
	"{{define \"one\"}}<{{.}}>{{end}}{{template \"one\" .kind}}{{template \"one\"}}", "{{template \"none\"}}", "{{block \"b\" .count}}{{.}}{{end}}",
	"{{/* comment */}}a {{- .kind -}} b", "{{(index .items 0).metadata.name}}", "{{.items.metadata}}", "{{nil}}", "{{1}} {{1.5}} {{\"s\"}} {{true}} {{'a'}} {{0x10}} {{1e3}}",
	"{{.whole}} {{.ratio}} {{.nested}}", "{{$x}}", "{{if}}{{end}}", "{{nofunc .kind}}", "{{.kind", "{{range .items}}", "{{call .kind}}",
	"{{range $i, $c := 3}}x{{end}}", "{{printf \"%v %v\" .none .missing}}", "{{print .missing}}", "{{range .nested}}[{{.}}]{{end}}",
}

func TestTemplate_EqualsTextTemplate(t *testing.T) {
	for _, text := range templates {
		for _, option := range []string{"missingkey=default", "missingkey=error"} {
			want, wantErr := withTextTemplate(text, option)
			got, gotErr := withGotemplate(text, option)
			assert.Equal(t, wantErr == nil, gotErr == nil, "%s %s: %v, want %v", option, text, gotErr, wantErr)
			assert.Equal(t, want, got, "%s %s", option, text)
		}
	}
}

func withTextTemplate(text, option string) (string, error) {
	parsed, err := template.New("output").Option(option).Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = parsed.Execute(&out, data())
	return out.String(), err
}

func withGotemplate(text, option string) (string, error) {
	parsed, err := gotemplate.Parse(text, nil, option == "missingkey=error")
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = parsed.Execute(&out, data())
	return out.String(), err
}

func TestTemplate_Errors(t *testing.T) {
	_, want := withTextTemplate("a {{.kind.more}}", "missingkey=default")
	_, got := withGotemplate("a {{.kind.more}}", "missingkey=default")
	require.EqualError(t, got, want.Error())
	_, want = withTextTemplate("{{.missing}}", "missingkey=error")
	_, got = withGotemplate("{{.missing}}", "missingkey=error")
	require.EqualError(t, got, want.Error())
}

func FuzzTemplate_EqualsTextTemplate(f *testing.F) {
	for _, text := range templates {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "template") || strings.Contains(text, "block") || strings.Contains(text, "range") {
			t.Skip("may not end")
		}
		want, wantErr := withTextTemplate(text, "missingkey=default")
		got, gotErr := withGotemplate(text, "missingkey=default")
		if wantErr == nil && (gotErr != nil || want != got) {
			t.Fatalf("%q: %q, %v; want %q", text, got, gotErr, want)
		}
	})
}
