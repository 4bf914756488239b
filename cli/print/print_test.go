package print_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parsed returns the flags of a command line.
func parsed(t *testing.T, args ...string) *print.Flags {
	t.Helper()
	flags := print.NewFlags()
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.AddFlags(fs)
	require.NoError(t, fs.Parse(args))
	return flags
}

func configMap(name string, data map[string]any) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "shop"}, "data": data,
	}}
}

// list writes objects as a list with the flags.
func list(t *testing.T, objects []*unstructured.Object, args ...string) (string, error) {
	t.Helper()
	var output strings.Builder
	printer, err := parsed(t, args...).Printer(&output)
	if err != nil {
		return "", err
	}
	err = printer.List(func(yield func(*unstructured.Object) bool) {
		for _, obj := range objects {
			if !yield(obj) {
				return
			}
		}
	})
	return output.String(), err
}

func TestPrinter_JSONEqualsStandardLibrary(t *testing.T) {
	for name, value := range map[string]any{
		"escapes":  "a\"\\\n\r\t\b\f\x00\x1f\x7f<&>\u2028\u2029é€😀\xff end",
		"integers": []any{int64(0), int64(-5), int64(1) << 62},
		"floats":   []any{1.0, 1.5, -2.25e-9, 1e21, 1e20, 123456789.0},
		"nested":   map[string]any{"b": []any{}, "a": map[string]any{}, "c": []any{map[string]any{"x": nil, "y": true}, []any{"z"}}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := configMap("one", map[string]any{"value": value})
			var output strings.Builder
			printer, err := parsed(t, "-o", "json").Printer(&output)
			require.NoError(t, err)
			require.NoError(t, printer.Object(obj))
			want, err := json.MarshalIndent(obj.Object, "", "    ")
			require.NoError(t, err)
			assert.Equal(t, string(want)+"\n", output.String())
		})
	}
}

func TestPrinter_ListsEqualWholeEncodings(t *testing.T) {
	long := strings.Repeat("words that are folded where the line is long ", 6)
	objects := []*unstructured.Object{
		configMap("one", map[string]any{"text": long, "lines": "first\n  second\n\nthird\n", "number": 3.0, "yes": "yes", "colon": "a: b"}),
		configMap("two", map[string]any{"empty": "", "list": []any{"a", []any{int64(1)}, map[string]any{"k": "v"}}, "large": 1e20}),
	}
	for _, count := range []int{0, 1, 2} {
		items := []any{}
		for _, obj := range objects[:count] {
			items = append(items, obj.Object)
		}
		whole := map[string]any{"apiVersion": "v1", "kind": "List", "items": items, "metadata": map[string]any{"resourceVersion": ""}}

		output, err := list(t, objects[:count], "-o", "json")
		require.NoError(t, err)
		want, err := json.MarshalIndent(whole, "", "    ")
		require.NoError(t, err)
		assert.Equal(t, string(want)+"\n", output)

		output, err = list(t, objects[:count], "-o", "yaml")
		require.NoError(t, err)
		want, err = yaml.Marshal(whole)
		require.NoError(t, err)
		assert.Equal(t, string(want), output)
	}
}

func TestPrinter_YAMLDocuments(t *testing.T) {
	var output strings.Builder
	printer, err := parsed(t, "-o", "yaml").Printer(&output)
	require.NoError(t, err)
	require.NoError(t, printer.Object(configMap("one", nil)))
	require.NoError(t, printer.Event("MODIFIED", configMap("two", nil)))
	assert.Equal(t, "apiVersion: v1\ndata: {}\nkind: ConfigMap\nmetadata:\n  name: one\n  namespace: shop\n---\n"+
		"object:\n  apiVersion: v1\n  data: {}\n  kind: ConfigMap\n  metadata:\n    name: two\n    namespace: shop\ntype: MODIFIED\n", output.String())
}

func TestPrinter_Formats(t *testing.T) {
	objects := []*unstructured.Object{
		configMap("one", map[string]any{"size": int64(10), "text": "short"}),
		configMap("two", map[string]any{"size": int64(9)}),
	}
	for _, c := range []struct{ format, want string }{
		{"name", "configmap/one\nconfigmap/two\n"},
		{"jsonpath={.items[*].metadata.name}", "one two"},
		{"jsonpath-as-json={.items[*].data.size}", "[\n    10,\n    9\n]\n"},
		{"go-template={{range .items}}{{.metadata.name}};{{.data.none}}{{exists . \"data\" \"text\"}} {{end}}", "one;<no value>true two;<no value>false "},
		{"go-template={{base64decode \"aGk=\"}}{{exists .items 5}}{{exists .items 1}}{{exists .none}}", "hifalsetruefalse"},
		{"go-template={{exists .items (index .items 0).data.size}}{{exists .kind 0}}{{eq (index .items 1).data.size 9}}", "falsefalsetrue"},
		{"custom-columns=NAME:.metadata.name,TEXT:data.text", "NAME   TEXT\none    short\ntwo    <none>\n"},
		{"jq=.metadata.name", "one\ntwo\n"},
		{"jq=[., inputs] | map(.data.size) | add", "19\n"},
		{"jq=.data", `{"size":10,"text":"short"}` + "\n" + `{"size":9}` + "\n"},
		{"jq=select(.data.size > 9).data.text, \"end\"", "short\nend\nend\n"},
	} {
		t.Run(c.format, func(t *testing.T) {
			output, err := list(t, objects, "-o", c.format)
			require.NoError(t, err)
			assert.Equal(t, c.want, output)
		})
	}
}

// As in kubectl, only the text behind the last line break has a next column, and earlier lines do not widen theirs.
func TestPrinter_ColumnsWithLineBreaks(t *testing.T) {
	objects := []*unstructured.Object{
		configMap("one", map[string]any{"text": "first\na line that is wider than the column\nlast"}),
		configMap("two", map[string]any{"text": "x"}),
	}
	output, err := list(t, objects, "-o", "custom-columns=TEXT:.data.text,NAME:.metadata.name")
	require.NoError(t, err)
	assert.Equal(t, "TEXT   NAME\nfirst\na line that is wider than the column\nlast   one\nx      two\n", output)
	output, err = list(t, objects, "-o", "custom-columns=NAME:.metadata.name,TEXT:.data.text")
	require.NoError(t, err)
	assert.Equal(t, "NAME   TEXT\none    first\na line that is wider than the column\nlast\ntwo    x\n", output)
}

func TestPrinter_TemplateErrorsHaveData(t *testing.T) {
	for _, c := range []struct{ template, option, cause string }{
		{"a{{.kind.more}}", "true", `template: output:1:8: executing "output" at <.kind.more>: can't evaluate field more in type interface {}`},
		{"a{{.none}}", "false", `template: output:1:3: executing "output" at <.none>: map has no entry for key "none"`},
	} {
		var output strings.Builder
		printer, err := parsed(t, "-o", "go-template="+c.template, "--allow-missing-template-keys="+c.option).Printer(&output)
		require.NoError(t, err)
		err = printer.Object(configMap("one", nil))
		require.EqualError(t, err, fmt.Sprintf("error executing template %q: %s", c.template, c.cause))
		assert.Equal(t, "aError executing template: "+c.cause+". Printing more information for debugging the template:\n"+
			"\ttemplate was:\n\t\t"+c.template+"\n"+
			"\traw data was:\n\t\t"+`{"apiVersion":"v1","data":null,"kind":"ConfigMap","metadata":{"name":"one","namespace":"shop"}}`+"\n"+
			"\tobject given to template engine was:\n\t\tmap[apiVersion:v1 data:map[] kind:ConfigMap metadata:map[name:one namespace:shop]]\n\n",
			output.String())
	}
}

func TestFlags_WhereSortNeat(t *testing.T) {
	large := configMap("large", map[string]any{"size": int64(10)})
	large.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "test"}})
	large.SetUID("u")
	large.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
	large.Object["status"] = map[string]any{"ready": true}
	objects := []*unstructured.Object{large, configMap("small", map[string]any{"size": int64(9)}), configMap("none", nil)}

	output, err := list(t, objects, "-o", "name", "--where", ".data.size > 9")
	require.NoError(t, err)
	assert.Equal(t, "configmap/large\n", output)
	output, err = list(t, objects, "-o", "name", "--sort-by", ".data.size")
	require.NoError(t, err)
	assert.Equal(t, "configmap/none\nconfigmap/small\nconfigmap/large\n", output)
	output, err = list(t, objects[:1], "-o", "jq=.", "--neat")
	require.NoError(t, err)
	assert.Equal(t, `{"apiVersion":"v1","data":{"size":10},"kind":"ConfigMap","metadata":{"name":"large","namespace":"shop"}}`+"\n", output)
	assert.NotNil(t, large.Object["status"], "the object is not changed")
	_, err = list(t, objects, "-o", "name", "--sort-by", ".data.missing")
	require.EqualError(t, err, `couldn't find any field with path "{.data.missing}" in the list of objects`)
	_, err = list(t, objects, "-o", "name", "--where", ".data.size | error")
	require.ErrorContains(t, err, "--where: configmap/large: ")
}

func TestFlags_NeatPod(t *testing.T) {
	pod, err := unstructured.Decode([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","creationTimestamp":"2024-01-01T00:00:00Z"},
		"spec":{"nodeName":"n","priority":0,"containers":[{"name":"c","volumeMounts":[{"name":"kube-api-access-x"},{"name":"own"}]}],
		"tolerations":[{"key":"node.kubernetes.io/not-ready","tolerationSeconds":300}],"volumes":[{"name":"kube-api-access-x"},{"name":"own"}]},"status":{}}`))
	require.NoError(t, err)
	output, err := list(t, []*unstructured.Object{pod}, "-o", "jq=.spec", "--neat")
	require.NoError(t, err)
	assert.Equal(t, `{"containers":[{"name":"c","volumeMounts":[{"name":"own"}]}],"volumes":[{"name":"own"}]}`+"\n", output)
}

func TestFlags_Invalid(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-o nonsense", "unable to match a printer suitable for the output format \"nonsense\""},
		{"-o jsonpath", "template format specified but no template given"},
		{"-o jsonpath={.a", "error parsing jsonpath {.a, "},
		{"-o go-template={{", "error parsing template {{, "},
		{"-o custom-columns=", "custom-columns format specified but no custom columns given"},
		{"-o custom-columns=A", "unexpected custom-columns spec: A, expected <header>:<json-path-expr>"},
		{"-o custom-columns=A:{a}{b}", "unexpected path string"},
		{"-o custom-columns-file=/none", "error reading template /none"},
		{"-o jsonpath-file=/none", "error reading --template /none"},
		{"-o jq", "jq format specified but no expression given"},
		{"-o jq=[", `parse jq "[": `},
		{"-o jq=nonsense", `compile jq "nonsense": `},
		{"-o json --where=[", `parse jq "[": `},
		{"-o json --show-labels", "--show-labels option cannot be used with json printer"},
		{"-o json --color=red", `--color "red": must be auto, always or never`},
		{"-o wide", "print wide: the format is a table"},
	} {
		_, err := parsed(t, strings.Fields(c.args)...).Printer(io.Discard)
		require.ErrorContains(t, err, c.want, "%s", c.args)
	}
}

// endless yields n objects, and requires each to be written before the next request.
func endless(t *testing.T, n int, output *bytes.Buffer) iter.Seq[*unstructured.Object] {
	t.Helper()
	return func(yield func(*unstructured.Object) bool) {
		for i := range n {
			if i > 0 {
				assert.Contains(t, output.String(), fmt.Sprintf("object-%d", i-1))
			}
			output.Reset()
			if !yield(configMap(fmt.Sprintf("object-%d", i), nil)) {
				return
			}
		}
	}
}

func TestPrinter_StreamsLists(t *testing.T) {
	for _, format := range []string{"json", "yaml", "name", "jq=.metadata.name"} {
		t.Run(format, func(t *testing.T) {
			var output bytes.Buffer
			printer, err := parsed(t, "-o", format).Printer(&output)
			require.NoError(t, err)
			require.NoError(t, printer.List(endless(t, 50, &output)))
		})
	}
}

func TestPrinter_EndsAtWriteError(t *testing.T) {
	closed := errors.New("closed pipe")
	for _, format := range []string{"json", "yaml", "name", "jq=.metadata.name", "custom-columns=N:.metadata.name", "jsonpath={.items[*].kind}"} {
		printer, err := parsed(t, "-o", format).Printer(failingWriter{closed})
		require.NoError(t, err)
		read := 0
		err = printer.List(func(yield func(*unstructured.Object) bool) {
			for ; read < 100_000; read++ {
				if !yield(configMap("one", map[string]any{"text": strings.Repeat("x", 100)})) {
					return
				}
			}
		})
		require.ErrorIs(t, err, closed, "%s", format)
		if !strings.HasPrefix(format, "custom") && !strings.HasPrefix(format, "jsonpath") {
			assert.Less(t, read, 3, "%s", format)
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name"}, {Name: "Ready", Type: "string"}, {Name: "Node", Type: "string", Priority: 1},
}

func row(name string, ready any, node string, labels map[string]string) *dynamic.TableRow {
	obj := configMap(name, nil)
	obj.SetLabels(labels)
	return &dynamic.TableRow{Columns: columns, Cells: []any{name, ready, node}, Object: obj}
}

func table(t *testing.T, opts *print.TableOptions, rows []*dynamic.TableRow, args ...string) string {
	t.Helper()
	var output strings.Builder
	table, err := parsed(t, args...).Table(&output, opts)
	require.NoError(t, err)
	for _, row := range rows {
		require.NoError(t, table.Event("ADDED", row))
	}
	require.NoError(t, table.Flush())
	return output.String()
}

func TestTable_Options(t *testing.T) {
	rows := []*dynamic.TableRow{row("one", "1/1", "n1", map[string]string{"app": "web", "a.b/tier": "x"}), row("long-name", int64(3), "n2\nline", nil)}
	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	for _, c := range []struct {
		args string
		opts *print.TableOptions
		want string
	}{
		{"", nil, "NAME        READY\none         1/1\nlong-name   3\n"},
		{"-o wide", nil, "NAME        READY   NODE\none         1/1     n1\nlong-name   3       n2...\n"},
		{"--no-headers", nil, "one         1/1\nlong-name   3\n"},
		{"--show-kind", &print.TableOptions{Kind: deployment}, "NAME                        READY\ndeployment.apps/one         1/1\ndeployment.apps/long-name   3\n"},
		{"-L app,a.b/tier", nil, "NAME        READY   APP   TIER\none         1/1     web   x\nlong-name   3             \n"},
		{"--show-labels", nil, "NAME        READY   LABELS\none         1/1     a.b/tier=x,app=web\nlong-name   3       <none>\n"},
		{"", &print.TableOptions{WithNamespace: true, WithEvents: true}, "EVENT      NAMESPACE   NAME        READY\nADDED      shop        one         1/1\nADDED      shop        long-name   3\n"},
		{"--where=.metadata.labels.app==\"web\"", nil, "NAME   READY\none    1/1\n"},
		{"--color=always", nil, "\x1b[1mNAME\x1b[0m        \x1b[1mREADY\x1b[0m\none         1/1\nlong-name   3\n"},
	} {
		assert.Equal(t, c.want, table(t, c.opts, rows, strings.Fields(c.args)...), "%s", c.args)
	}
}

func TestTable_ColorsKeepWidths(t *testing.T) {
	rows := []*dynamic.TableRow{row("one", "Running", "", nil), row("two", "1/2", "", nil), row("three", "CrashLoopBackOff", "", nil)}
	colored := table(t, nil, rows, "--color=always")
	assert.Contains(t, colored, "\x1b[32mRunning\x1b[0m")
	assert.Contains(t, colored, "\x1b[33m1/2\x1b[0m")
	assert.Contains(t, colored, "\x1b[31mCrashLoopBackOff\x1b[0m")
	plain := colored
	for _, code := range []string{"\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m"} {
		plain = strings.ReplaceAll(plain, code, "")
	}
	assert.Equal(t, table(t, nil, rows, "--color=never"), plain)
}

func TestTable_LongListHoldsFirstRows(t *testing.T) {
	var output bytes.Buffer
	table, err := parsed(t).Table(&output, nil)
	require.NoError(t, err)
	largest := 0
	for i := range 100_000 {
		require.NoError(t, table.Row(row(fmt.Sprintf("object-%06d", i), strings.Repeat("x", 50), "", nil)))
		if i > 20_000 { // the look-ahead is written: what follows comes in small writes
			largest = max(largest, output.Len())
			output.Reset()
		}
	}
	assert.Less(t, largest, 2<<20)
	require.NoError(t, table.Row(row(strings.Repeat("y", 30), "wide", "", nil)))
	require.NoError(t, table.Flush())
	assert.Contains(t, output.String(), strings.Repeat("y", 30)+"   wide\n")
}

func TestTable_SortRows(t *testing.T) {
	flags := parsed(t, "--sort-by", ".metadata.name")
	rows := []*dynamic.TableRow{row("b", "1", "", nil), row("c", "1", "", nil), row("a", "1", "", nil)}
	require.NoError(t, flags.SortRows(rows))
	assert.Equal(t, []any{"a", "b", "c"}, []any{rows[0].Cells[0], rows[1].Cells[0], rows[2].Cells[0]})
	assert.Equal(t, metav1.IncludeObject, flags.Include(false))
	assert.Equal(t, metav1.IncludeNone, parsed(t).Include(false))
	assert.Equal(t, metav1.IncludeMetadata, parsed(t).Include(true))
}

func TestPrinter_Changed(t *testing.T) {
	deployment := &unstructured.Object{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}}}
	for output, want := range map[string]string{
		"":         "deployment.apps/web created\n",
		"name":     "deployment.apps/web\n",
		"jq=.kind": "Deployment\n",
	} {
		var written strings.Builder
		flags := print.NewFlags()
		flags.Output = output
		printer, err := flags.Printer(&written)
		require.NoError(t, err)
		require.NoError(t, printer.Changed(deployment, "created"))
		assert.Equal(t, want, written.String())
	}
}

func TestColumns_HeaderWithoutRows(t *testing.T) {
	var written strings.Builder
	columns := print.NewColumns(&written, []string{"NAME", "AGE"})
	require.NoError(t, columns.Flush())
	require.NoError(t, columns.Row("web\x1b", "1s"))
	require.NoError(t, columns.Flush())
	assert.Equal(t, "NAME   AGE\nweb^[   1s\n", written.String())
}
