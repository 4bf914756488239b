package gotemplate_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/cli/internal/gotemplate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const document = `{"kind":"List","n":3,"f":1.5,"yes":true,"no":false,"null":null,"zero":0,"empty":"","none":[],"nothing":{},"text":"a<b>'c'\"&=\u00e9\u2028\u0001\\",
"labels":{"app":"web","tier":"front","a.b/c":"x"},"numbers":[3,1,2],"mixed":[1,"a",null,true,{"x":1},[1,2]],"secret":"aGVsbG8=",
"items":[{"metadata":{"name":"a","labels":{"app":"web"}},"spec":{"replicas":2}},{"metadata":{"name":"b"},"spec":null},{"metadata":null}]}`

// data returns the document decoded, with integers as int64 like in objects.
func data(t testing.TB) map[string]any {
	t.Helper()
	var decoded map[string]any
	require.NoError(t, json.Unmarshal([]byte(document), &decoded))
	integers, _ := withIntegers(decoded).(map[string]any)
	return integers
}

func withIntegers(v any) any {
	switch v := v.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = withIntegers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = withIntegers(v[key])
		}
	}
	return v
}

func decode(text string) (string, error) {
	decoded, err := base64.StdEncoding.DecodeString(text)
	return string(decoded), err
}

func count(value any, others ...any) any { return len(others) }

// assertSame compares output and error with those of text/template.
func assertSame(t testing.TB, text string, data any) {
	t.Helper()
	for _, missing := range []string{"missingkey=error", "missingkey=default"} {
		upstream, upstreamErr := template.New("output").Funcs(template.FuncMap{"decode": decode, "count": count}).Option(missing).Parse(text)
		parsed, err := gotemplate.Parse("output", text, &gotemplate.Options{
			MissingKeyError: missing == "missingkey=error",
			Strings:         map[string]func(string) (string, error){"decode": decode},
			Values:          map[string]func(any, ...any) any{"count": count},
		})
		if upstreamErr != nil {
			require.EqualError(t, err, upstreamErr.Error(), text)
			return
		}
		require.NoError(t, err, text)
		var want, got bytes.Buffer
		wantErr := upstream.Execute(&want, data)
		gotErr := parsed.Execute(&got, data)
		assert.Equal(t, want.String(), got.String(), text)
		if wantErr == nil {
			assert.NoError(t, gotErr, text)
		} else {
			assert.EqualError(t, gotErr, wantErr.Error(), text)
		}
	}
}

const largest = "9223372036854775807"

// expressions are values of each kind, and failing ones.
var expressions = []string{
	".", ".kind", ".n", ".f", ".yes", ".no", ".null", ".zero", ".empty", ".none", ".nothing", ".missing", ".labels", ".numbers", ".mixed",
	".labels.app", ".labels.missing", ".missing.deep", ".null.deep", ".kind.deep", ".n.deep", ".items", "$", "$.kind", "$x", "$x.y", `"text"`, "1", "-2", "1.5", "1e3",
	"0x1F", "'a'", "1i", "true", "nil", largest, "99999999999999999999", "(index .items 0).metadata.name", "(index .mixed 2)", "(.labels).app",
	"(len .items)", "(nil).x", "index .numbers 1", "index .mixed 4 \"x\"", "(index .kind 0)", "(.missing).x", "(.null).x", "(print .n).x",
}

func TestExecute_ExpressionsLikeTextTemplate(t *testing.T) {
	root := data(t)
	for _, a := range expressions {
		for _, text := range []string{
			"{{A}}", "{{$x := A}}{{$x}}", "{{if A}}y{{else}}n{{end}}", "{{with A}}{{.}}{{else}}n{{end}}", "{{range A}}[{{.}}]{{else}}none{{end}}",
			"{{range $i, $e := A}}{{$i}}={{$e}};{{end}}", "{{range $e := A}}{{$e}};{{end}}", "{{not A}}", "{{len A}}", "{{index A 1}}", "{{index A \"app\"}}", "{{index A .null}}",
			"{{slice A}}", "{{slice A 1}}", "{{slice A 1 2}}", "{{slice A 1 2 3}}", "{{slice A 2 1}}", "{{slice A 0 1 2 3}}", "{{print A}}", "{{printf \"%v %s %d\" A A A}}", "{{printf A}}", "{{println A A}}",
			"{{html A}}", "{{js A}}", "{{urlquery A}}", "{{A | print}}", "{{A | printf \"%v\"}}", "{{A | len}}", "{{decode A}}", "{{A | decode}}", "{{count A A 1}}", "{{A | count}}", "{{A 1}}", "{{1 | A}}",
			"{{call A}}", "{{A | call}}", "{{and A .kind}}", "{{or A .kind}}", "{{and .yes A}}", "{{or .no A}}", "{{.yes | and A}}", "{{and A}}", "{{template \"t\" A}}{{define \"t\"}}<{{.}}{{$}}>{{end}}",
			"{{(A).name}}", "{{range $i, $e := .items}}{{A}}{{end}}", "{{range .items}}{{with .metadata}}{{.name}}{{end}}{{break}}{{A}}{{end}}", "{{with .labels}}{{A}}{{end}}",
		} {
			if a == largest && strings.Contains(text, "range") {
				continue // a loop without end
			}
			assertSame(t, strings.ReplaceAll(text, "A", a), root)
		}
	}
}

func TestExecute_ComparisonsLikeTextTemplate(t *testing.T) {
	root := data(t)
	for _, a := range expressions {
		for _, b := range expressions {
			for _, name := range []string{"eq", "ne", "lt", "le", "gt", "ge", "index", "slice"} {
				assertSame(t, "{{"+name+" "+a+" "+b+"}}", root)
			}
		}
	}
}

func TestExecute_ProgramsLikeTextTemplate(t *testing.T) {
	root := data(t)
	for _, text := range []string{
		"", "text", "{{/* comment */}}", "{{- .kind -}} \n x", "{{range .items}}{{if eq .metadata.name \"b\"}}{{continue}}{{end}}{{.metadata.name}}{{end}}",
		"{{range $i, $e := .numbers}}{{if $i}}, {{end}}{{$e}}{{end}}", "{{$n := 0}}{{range .numbers}}{{$n = .}}{{end}}{{$n}}", "{{$i := 0}}{{$e := 0}}{{range $i, $e = .numbers}}{{end}}{{$i}}{{$e}}",
		"{{range $k, $v := .labels}}{{$k}}={{$v}} {{end}}", "{{range 3}}{{.}}{{end}}", "{{range $i := .n}}{{$i}}{{end}}", "{{range $i, $j := 3}}{{end}}", "{{range .items}}{{range .}}{{break}}{{end}}x{{end}}",
		"{{range .items}}{{.metadata.name}}{{end}}", "{{range .items}}{{.spec.replicas}}{{end}}", "{{define \"a\"}}{{.}}{{if .}}{{template \"b\" .}}{{end}}{{end}}{{define \"b\"}}b{{end}}{{template \"a\" .kind}}",
		"{{template \"none\"}}", "{{template \"t\"}}{{define \"t\"}}{{.}}{{$}}{{end}}", "{{$x}}", "{{nofunc 1}}", "{{.kind", "{{end}}", "{{if .yes}}", "{{define \"x\"}}{{end}}{{define \"x\"}}y{{end}}{{template \"x\"}}",
		"{{define \"r\"}}{{template \"r\"}}{{end}}", "{{eq .n 3 4}}", "{{eq .n 4 3}}", "{{eq 1}}", "{{eq}}", "{{lt 1}}", "{{not}}", "{{and}}", "{{or}}", "{{call}}", "{{len}}", "{{len 1 2}}", "{{index}}", "{{printf}}", "{{print}}", "{{html}}", "{{decode}}", "{{decode .kind .kind}}",
		"{{decode .secret}}", "{{decode .kind}}", "{{.secret | decode | printf \"%s!\"}}", "{{js .text}}{{html .text}}{{urlquery .text}}", "{{html .text 1 nil}}", "{{printf \"%d %.2f %q %v\" .n .f .kind .labels}}", "{{(index .items 5)}}", "{{index .numbers -1}}",
		"{{with $v := .labels}}{{$v.app}}{{end}}", "{{with .missing}}{{else with .kind}}{{.}}{{end}}", "{{if .missing}}{{else if .yes}}x{{end}}", "{{`raw`}}", "{{\"%\" | printf}}", "100%{{.n.x}}", "{{.items.metadata}}", "{{range .}}{{.}}{{end}}",
		"{{$a := .labels}}{{$b := $a.app}}{{$b}}{{$b.x}}", "{{$.labels.app}}", "{{or .missing .null 0 \"x\"}}", "{{and 1 .labels .numbers}}", "{{eq .labels .labels}}", "{{eq .null nil}}", "{{eq .missing nil}}", "{{ne .null .missing}}", "{{eq (index .text 0) 97}}", "{{lt (index .text 0) 98}}",
		"{{break}}", "{{continue}}", "{{range .numbers}}{{template \"t\"}}{{end}}{{define \"t\"}}{{range 2}}{{continue}}{{end}}{{end}}",
	} {
		assertSame(t, text, root)
	}
	for _, root := range []any{nil, "text", int64(3), true, 1.5, []any{"a", nil}, map[string]any{}} {
		for _, text := range []string{"{{.}}", "{{.x}}", "{{range .}}{{.}}{{end}}", "{{$}}", "{{len .}}", "{{index . 0}}"} {
			assertSame(t, text, root)
		}
	}
}

func FuzzExecute_LikeTextTemplate(f *testing.F) {
	for _, text := range expressions {
		f.Add("{{" + text + "}}")
	}
	f.Add("{{range $k, $v := .labels}}{{$k}}={{$v}} {{else}}{{break}}{{end}}")
	root := data(f)
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "template") || strings.Contains(text, "range") && strings.ContainsAny(text, "123456789") {
			t.Skip("recursion and long loops")
		}
		assertSame(t, text, root)
	})
}
