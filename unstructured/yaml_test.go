package unstructured

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/testing/cluster"
)

// readStream reads all objects of a stream, and the error behind them if it is not io.EOF.
func readStream(r io.Reader) ([]map[string]any, error) {
	var all []map[string]any
	decoder := NewYAMLDecoder(r)
	for {
		obj, err := decoder.Next()
		if err != nil {
			if _, again := decoder.Next(); again != err {
				return all, fmt.Errorf("then %w", again)
			}
			if err == io.EOF {
				return all, nil
			}
			return all, err
		}
		all = append(all, obj.Object)
	}
}

// streams are inputs that can be read, and how many objects they hold.
var streams = map[string]struct {
	text  string
	count int
}{
	"nothing": {"", 0}, "blank": {" \n\t\n", 0}, "only comments": {"# a\n  # b\n", 0}, "only markers": {"---\n---\n...\n---", 0}, "null": {"null\n", 0}, "tilde": {"--- ~\n---\nkind: A\n", 1},
	"one": {"kind: A\nn: 1\n", 1}, "no newline at the end": {"kind: A\nn: 1", 1}, "marker first": {"---\nkind: A\n", 1}, "comment first": {"# c\n---\n# d\nkind: A\n", 1},
	"two": {"kind: A\n---\nkind: B\n", 2}, "empty between": {"kind: A\n---\n---\n# c\n--- # d\nkind: B\n---\n", 2}, "ended": {"kind: A\n...\n# c\n---\nkind: B\n...\n", 2}, "ended, then bare": {"kind: A\n...\nkind: B\n", 2},
	"Windows": {"kind: A\r\na: |\r\n  x\r\n  y\r\n---\r\nkind: B\r\n...\r\n", 2}, "byte order mark": {"\ufeffkind: A\n", 1}, "byte order mark and marker": {"\ufeff---\nkind: A\n", 1}, "mark inside": {"kind: A\n\ufeff---\nkind: B\n", 2},
	"only a mark": {"\ufeff", 0}, "spaces behind a marker": {"---  \t\nkind: A\n---\t# c\nkind: B\n", 2}, "marker in a text": {"kind: A\na: |\n  ---\n  x\nb: '\n  ---'\nc: ---x\n", 1}, "no marker": {"kind: A\na:\n  ----\n", 1},
	"object on the marker's line": {"--- {kind: A}\n--- {kind: B}", 2}, "directive": {"%YAML 1.1\n---\nkind: A\n", 1}, "directives twice": {"%YAML 1.1\n---\nkind: A\n...\n%TAG ! !x\n---\nkind: B\n", 2},
	"JSON": {`{"kind":"A","n":1e3}`, 1}, "JSON in a row": {`{"kind":"A"} {"kind":"B"}` + "\n\n" + `{"kind":"C"}`, 3}, "JSON with markers": {"---\n{\"kind\":\"A\"}\n---\n{\"kind\":\"B\"}\n{\"kind\":\"C\"}\n", 3},
	"JSON then YAML": {"{\"kind\":\"A\"}\n---\nkind: B\n", 2}, "JSON with tabs": {"{\n\t\"kind\":\t\"A\"\n}\n", 1}, "JSON, which YAML reads otherwise": {`{"kind":"A","t":"\ud83e\udd8a\/","` + strings.Repeat("k", 2000) + `":-0.0}`, 1},
	"JSON with a comment": {"{\"kind\":\"A\"} # c\n", 1}, "JSON behind a comment": {"# c\n{\"kind\":\"A\"}\n", 1}, "braces": {"{kind: A, 'b': [1, 2,],}\n", 1},
	"a list": {"kind: List\nitems:\n- kind: A\n- kind: B\n", 2}, "a list with items before its kind": {"items: [{kind: A}, {n: 1}]\nkind: BList\napiVersion: v1\n", 2},
	"lists in lists":      {"kind: A\n---\nkind: List\nitems:\n- kind: BList\n  apiVersion: v1\n  items: [{}, {}]\n- kind: C\n- kind: List\n  items: null\n- kind: List\n  items: []\n---\nkind: D\n", 5},
	"JSON lists in a row": {`{"kind":"List","items":[{"kind":"A"},{"kind":"B"}]}{"kind":"List","items":[{"kind":"C"}]}`, 3}, "list without items": {"kind: AllowList\nspec: {items: [1]}\n", 1},
	"items of another kind": {"kind: Lists\nitems: [1]\n", 1}, "list of an alias": {"kind: List\nx: &a {kind: A}\nitems: [*a, *a]\n", 2},
	"YAML 1.1":       {"kind: A\na: yes\nb: 017\nc: 0x1f\nd: 1_000\ne: 2001-01-01\nf: 1:30\non: off\ng: ~\nh: .5\ni: 0b11\nj: 1e+3\n1: a\n1.5: b\nfalse: c\n", 1},
	"exact integers": {"kind: A\na: 9007199254740993\nb: -9223372036854775808\nc: 9223372036854775807\nd: 9223372036854775808\n", 1}, "aliases": {"kind: A\na: &x {b: [1]}\nc: *x\nd: &y z\n*y : w\n", 1},
	"merge": {"kind: A\na: &x {b: 1, c: 2}\nd:\n  <<: *x\n  b: 3\ne:\n  <<: [*x, {f: 1}]\n", 1}, "anchor twice": {"kind: A\na: &x 1\nb: *x\nc: &x 2\nd: *x\n", 1},
	"text": {"kind: A\na: >-\n  folded\n  text\n\n  more\nb: |+\n  kept\n\nc: \"esc\\u00e9\\x41\\n\"\nd: 'it''s'\ne: plain\n  going on\n", 1}, "tags": {"kind: A\na: !!str 1\nb: !!int \"1\"\n!!str 5 : !!float 1\n", 1}, "empty value": {"kind: A\na:\nb: ''\n", 1},
	"cron": {"kind: A\na: '*/5 * * * *'\nb: a & b\nc: a*b\n", 1}, "deep": {"kind: A\na: " + nested(9000) + "\n", 1}, "long key": {"kind: A\n? " + strings.Repeat("k", 2000) + "\n: 1\n", 1},
}

func TestYAMLDecoder_Streams(t *testing.T) {
	for name, c := range streams {
		t.Run(name, func(t *testing.T) {
			got, err := readStream(strings.NewReader(c.text))
			require.NoError(t, err)
			assert.Len(t, got, c.count)
			bytewise, err := readStream(iotest.OneByteReader(strings.NewReader(c.text)))
			require.NoError(t, err)
			assert.Equal(t, got, bytewise)
		})
	}
}

func TestYAMLDecoder_EqualsSigsYAML(t *testing.T) {
	for name, c := range streams {
		if c.count != 1 || strings.HasPrefix(name, "JSON") || strings.Contains(c.text, "---\n") || strings.HasPrefix(name, "byte order") {
			continue // it reads one document, and JSON as YAML
		}
		t.Run(name, func(t *testing.T) {
			got, err := readStream(strings.NewReader(c.text))
			require.NoError(t, err)
			data, err := yaml.YAMLToJSON([]byte(c.text))
			require.NoError(t, err)
			want, err := reference(data)
			require.NoError(t, err)
			assertIdentical(t, want, got[0])
		})
	}
}

func TestYAMLDecoder_Lists(t *testing.T) {
	got, err := readStream(strings.NewReader(streams["lists in lists"].text))
	require.NoError(t, err)
	assert.Equal(t, []map[string]any{
		{"kind": "A"}, {"kind": "B", "apiVersion": "v1"}, {"kind": "B", "apiVersion": "v1"}, {"kind": "C"}, {"kind": "D"},
	}, got)
}

func TestYAMLDecoder_ListErrors(t *testing.T) {
	deep := strings.Repeat(`{"kind":"List","items":[`, maxListDepth+1) + `{"kind":"A"}` + strings.Repeat("]}", maxListDepth+1)
	for text, want := range map[string]struct {
		count int
		err   string
	}{
		"kind: A\n---\nkind: List\nitems:\n- kind: B\n- 7\n- kind: C\n":                  {2, "document 2, line 6: items[1]: is int64, not an object"},
		"kind: List\nitems:\n- kind: B\n- x: 1\n":                                        {1, "document 1, line 4: items[1]: Object 'Kind' is missing in '{apiVersion: \"\", metadata.name: \"\", fields: 1}'"},
		"kind: List\nitems:\n- kind: B\n- kind: List\n  items:\n  - kind: C\n  - null\n": {2, "document 1, line 7: items[1].items[1]: is null, not an object"},
		"kind: List\nitems:\n- kind: B\n  apiVersion: a/b/c\n":                           {0, "document 1, line 3: items[0]: invalid apiVersion: unexpected GroupVersion string: a/b/c"},
		"kind: List\nitems: {a: 1}\n":                                                    {0, "document 1, line 1: the list's items are map[string]any, not []any"},
		"kind: A\n---\nkind: List\nitems:\n- kind: List\n  items: 7\n":                   {1, "document 2, line 5: items[0]: the list's items are int64, not []any"},
		"{\"kind\":\"List\",\n\"items\":[\n{\"kind\":\"A\"},\n{\"x\":1}]}":               {1, "document 1, line 4: items[1]: Object 'Kind' is missing in '{apiVersion: \"\", metadata.name: \"\", fields: 1}'"},
		"{\"kind\":\"List\",\n\"items\":[\n{\"x\":1}]}\n{\"kind\":\"A\"}":                {0, "document 1, line 3: items[0]: Object 'Kind' is missing in '{apiVersion: \"\", metadata.name: \"\", fields: 1}'"},
		"kind: List\nx: &a\n- 7\nitems: *a\n":                                            {0, "document 1, line 3: items[0]: is int64, not an object"},
		deep:                                                                             {0, "document 1, line 1: " + strings.TrimSuffix(strings.Repeat("items[0].", maxListDepth), ".") + ": more than 8 nested lists"},
	} {
		got, err := readStream(strings.NewReader(text))
		require.EqualError(t, err, want.err)
		assert.Len(t, got, want.count)
	}
}

func TestYAMLDecoder_All(t *testing.T) {
	decoder := NewYAMLDecoder(strings.NewReader("kind: A\n---\nkind: List\nitems: [{kind: B}, {kind: C}, 7]\n---\nkind: D\n"))
	var kinds []string
	for obj, err := range decoder.All() {
		require.NoError(t, err)
		if kinds = append(kinds, obj.GetKind()); len(kinds) == 2 {
			break
		}
	}
	errs := 0
	for obj, err := range decoder.All() {
		if err != nil {
			errs++
			require.EqualError(t, err, "document 2, line 4: items[2]: is int64, not an object")
			continue
		}
		kinds = append(kinds, obj.GetKind())
	}
	assert.Equal(t, []string{"A", "B", "C"}, kinds)
	assert.Equal(t, 1, errs)
	for _, err := range NewYAMLDecoder(strings.NewReader("")).All() {
		t.Error("an object of an empty stream", err)
	}
}

func TestYAMLDecoder_ListsEqualKubectl(t *testing.T) {
	const text = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n---\n" +
		"apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: c}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: d}}]\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: e}}\n"
	kubectl := cluster.Kubectl(t)
	file := filepath.Join(t.TempDir(), "stream.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	command := exec.CommandContext(t.Context(), kubectl, "annotate", "--local", "-f", file, "-o", "name", "x=y")
	command.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	got, err := readStream(strings.NewReader(text))
	require.NoError(t, err)
	var names []string
	for _, m := range got {
		names = append(names, "configmap/"+(&Object{Object: m}).GetName())
	}
	assert.Equal(t, strings.Fields(string(output)), names)
}

func TestYAMLDecoder_EqualsKubectl(t *testing.T) {
	kubectl := cluster.Kubectl(t)
	for _, name := range []string{"two", "empty between", "Windows", "JSON in a row", "YAML 1.1", "merge", "text", "aliases", "exact integers"} {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer("kind: ", "metadata: {name: a}\napiVersion: v1\nkind: ", `{"kind"`, `{"metadata":{"name":"a"},"apiVersion":"v1","kind"`, "{kind: ", "{metadata: {name: a}, apiVersion: v1, kind: ").Replace(streams[name].text)
			text = strings.NewReplacer("\r\n", "\n", "\n", map[bool]string{true: "\r\n", false: "\n"}[strings.Contains(text, "\r")]).Replace(text)
			text = strings.ReplaceAll(text, "\nj: 1e+3", "") // it prints this otherwise
			file := filepath.Join(t.TempDir(), "stream.yaml")
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			command := exec.CommandContext(t.Context(), kubectl, "annotate", "--local", "-f", file, "-o", "json", "x=y")
			command.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
			output, err := command.Output()
			require.NoError(t, err)
			want, err := readStream(bytes.NewReader(output))
			require.NoError(t, err)
			got, err := readStream(strings.NewReader(text))
			require.NoError(t, err)
			require.Len(t, got, len(want))
			for i := range got {
				obj := &Object{Object: got[i]}
				obj.SetAnnotations(map[string]string{"x": "y"})
				assertIdentical(t, settled(want[i]), settled(got[i]))
			}
		})
	}
}

func TestYAMLDecoder_ErrorNamesDocumentAndLine(t *testing.T) {
	for text, want := range map[string]string{
		"kind: A\n---\n# c\n\napiVersion: v1\n":                          `document 2, line 5: Object 'Kind' is missing in '{apiVersion: "v1", metadata.name: "", fields: 1}'`,
		"kind: A\n---\nkind: B\na: b: c\n":                               "document 2, line 4: the YAML is broken: mapping values are not allowed in this context",
		"kind: A\n---\n---\nkind: B\na:\n\t- x\n":                        "document 2, line 6: the YAML is broken: found character that cannot start any token",
		"a: [1, 2\nb: 3\n":                                               "document 1, line 2: the YAML is broken: did not find expected ',' or ']'",
		"kind: A\na:\n  b: 1\n c: 2\n":                                   "document 1, line 4: the YAML is broken: did not find expected key",
		"kind: A\na: \"b\n":                                              "document 1, line 2: the YAML is broken: found unexpected end of stream",
		"kind: A\nb: 1\na: x\x01y\n":                                     "document 1, line 3: the YAML is broken: control characters are not allowed",
		"kind: A\nb: 1\na: \xff\n":                                       "document 1, line 3: the YAML is broken: invalid leading UTF-8 octet",
		"kind: A\nb: *secret\n":                                          "document 1, line 2: a value with a * in front is an alias, and its anchor is missing: put the value in quotes",
		"kind: A\nb:\n  c: 1\n  d: 2\n  c: 3\n":                          `document 1, line 5: the field "c" is there twice`,
		"kind: A\nb:\n- {c: 1, c: {d: 1}}\n":                             `document 1, line 3: the field "c" is there twice`,
		"kind: A\nkind: A\n":                                             `document 1, line 2: the field "kind" is there twice`,
		"kind: A\n1: a\n\"1\": b\n":                                      `document 1, line 3: the field "1" is there twice`,
		"kind: A\nyes: a\n\"true\": b\n":                                 `document 1, line 3: the field "true" is there twice`,
		"kind: A\n0x10: a\n16: b\n":                                      `document 1, line 3: the field "16" is there twice`,
		"kind: A\na: &x {b: 1}\nc:\n  <<: *x\n  <<: *x\n":                `document 1, line 5: the field "<<" is there twice`,
		"{\"kind\":\"A\"}\n{\"kind\":\"B\",\n\"a\":{\"b\":1,\n\"b\":2}}": `document 2, line 4: the field "b" is there twice`,
		"kind: A\n~: x\n":                                                "document 1, line 2: a field's name is null or has a tag: put it in quotes",
		"kind: A\n? [a]\n: x\n":                                          "document 1, line 2: a field's name is a list or a map",
		"kind: A\na: 1\nb: -.inf\n":                                      "document 1, line 3: the YAML means nothing in JSON: it has no .inf or .nan, and a value must fit its tag",
		"kind: A\na: 1\nb: !!int secret\n":                               "document 1, line 3: the YAML means nothing in JSON: it has no .inf or .nan, and a value must fit its tag",
		"kind: A\n---\n- a\n- b\n":                                       "document 2, line 3: is a list, not an object",
		"kind: A\n---\ntext\n":                                           "document 2, line 3: is a single value, not an object",
		"{\"kind\":\"A\"}\n\n{\"kind\":\"B\",\n x}":                      "document 2, line 4: invalid JSON at byte 14: 'x' where a member's name should begin",
		"{\"kind\":\"A\"}\n{\"a\":1}\n":                                  `document 2, line 2: Object 'Kind' is missing in '{apiVersion: "", metadata.name: "", fields: 1}'`,
		"\r\nkind: A\r\n---\r\na: 1\r\n":                                 `document 2, line 4: Object 'Kind' is missing in '{apiVersion: "", metadata.name: "", fields: 1}'`,
		"kind: A\na: &x [*x]\n":                                          "document 1, line 2: an alias contains itself",
		"kind: A\r---\rkind: B\r":                                        "document 1, line 2: there is more behind the end of the document",
		"{kind: A},\n":                                                   "document 1, line 1: there is more behind the end of the document",
		"kind: A\napiVersion: a/b/c\n":                                   "document 1, line 1: invalid apiVersion: unexpected GroupVersion string: a/b/c",
		"kind: A\n--- |\n  text\n":                                       "document 2, line 2: is a single value, not an object",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := readStream(strings.NewReader(text))
			assert.EqualError(t, err, want)
		})
	}
}

func TestYAMLDecoder_Position(t *testing.T) {
	decoder := NewYAMLDecoder(strings.NewReader("# pods\n---\n\nkind: Pod\napiVersion: v1\n---\n# none\n---\n" +
		"kind: PodList\napiVersion: v1\nitems: [{}, {}]\n---\n{\"kind\":\"A\",\"apiVersion\":\"v1\"}\n{\"kind\":\"B\",\"apiVersion\":\"v1\"}\n"))
	for _, want := range [][2]int{{1, 4}, {2, 9}, {2, 9}, {3, 13}, {4, 14}} {
		obj, err := decoder.Next()
		require.NoError(t, err)
		document, line := decoder.Position()
		assert.Equal(t, want, [2]int{document, line}, "%s", obj.GetKind())
	}
	_, err := decoder.Next()
	assert.ErrorIs(t, err, io.EOF)
}

func TestYAMLDecoder_DocumentsBeforeError(t *testing.T) {
	got, err := readStream(strings.NewReader("kind: A\n---\nkind: B\n---\na: [\n---\nkind: C\n"))
	assert.ErrorContains(t, err, "document 3, line 6: ")
	assert.Len(t, got, 2)
}

func TestYAMLDecoder_ReaderError(t *testing.T) {
	broken := errors.New("broken")
	got, err := readStream(io.MultiReader(strings.NewReader("kind: A\n---\nkind: B\n"), iotest.ErrReader(broken)))
	assert.ErrorIs(t, err, broken)
	assert.EqualError(t, err, "reading YAML behind line 3: broken")
	assert.Len(t, got, 1, "a document that may be cut is not read")
}

// bombs are small and mean much.
func bombs() map[string]string {
	var doubling, lists strings.Builder
	doubling.WriteString("kind: A\na0: &a0 [x]\n")
	for i := range 60 {
		fmt.Fprintf(&doubling, "a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	fmt.Fprintf(&lists, "kind: A\na: &a %q\nb: [", strings.Repeat("x", 1<<20))
	lists.WriteString(strings.Repeat("*a,", 900) + "]\n")
	var deep strings.Builder
	deep.WriteString("kind: A\na0: &a0 x\n")
	for i := range 20 {
		fmt.Fprintf(&deep, "a%d: &a%d %s*a%d %s\n", i+1, i+1, strings.Repeat("[", 900), i, strings.Repeat("]", 900))
	}
	var merges strings.Builder
	merges.WriteString("kind: A\na0: &a0 {x: [y]}\n")
	for i := range 60 {
		fmt.Fprintf(&merges, "a%d: &a%d {<<: *a%d, l: *a%d, r: *a%d}\n", i+1, i+1, i, i, i)
	}
	return map[string]string{
		"aliases that double": doubling.String(), "a long text many times": lists.String(), "aliases that go deep": deep.String(), "merges": merges.String(),
		"brackets": "kind: A\na: " + strings.Repeat("[", 1<<20), "braces": "kind: A\na: " + strings.Repeat("{a: ", 1<<18), "dashes": "kind: A\na:\n" + strings.Repeat("- ", 1<<20), "JSON": `{"kind":"A","a":` + strings.Repeat("[", 1<<20),
		"closed brackets": "kind: A\na: " + nested(10000), "question marks": strings.Repeat("? ", 1<<18),
	}
}

func TestYAMLDecoder_RejectsAliasBombs(t *testing.T) {
	for name, text := range bombs() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := readStream(strings.NewReader(text))
			runtime.ReadMemStats(&after)
			require.Error(t, err)
			assert.Less(t, len(err.Error()), 500)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "bytes allocated in all")
		})
	}
}

func TestYAMLDecoder_Aliases(t *testing.T) {
	got, err := readStream(strings.NewReader("kind: A\na: &a " + strings.Repeat("x", 1000) + "\nb: [" + strings.Repeat("*a,", 900) + "]\n"))
	require.NoError(t, err)
	assert.Len(t, got[0]["b"], 900)
}

func TestEncodeYAML_EqualsSigsYAML(t *testing.T) {
	for name, data := range samples(t) {
		t.Run(name, func(t *testing.T) {
			obj, err := Decode(data)
			require.NoError(t, err)
			got, err := EncodeYAML(obj)
			require.NoError(t, err)
			assertYAMLRoundTrip(t, obj)
			want, err := yaml.Marshal(obj.Object)
			if name == "configmap.json" {
				require.ErrorContains(t, err, "control characters", "it reads JSON as YAML, which may not have them")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got))
		})
	}
}

// assertYAMLRoundTrip holds what YAML makes of obj against what JSON makes of it.
func assertYAMLRoundTrip(t testing.TB, obj *Object) {
	t.Helper()
	data, err := Encode(obj)
	require.NoError(t, err)
	want, err := Decode(data)
	require.NoError(t, err)
	text, err := EncodeYAML(obj, obj)
	require.NoError(t, err)
	got, err := readStream(bytes.NewReader(text))
	items, itemsErr := appendItems(nil, want.Object, nil)
	if itemsErr != nil {
		require.ErrorContains(t, err, itemsErr.Error())
		return
	}
	require.NoError(t, err, "%.2000s", text)
	require.Len(t, got, 2*len(items))
	for i, item := range got {
		assertIdentical(t, items[i%len(items)].Object, item)
	}
}

func TestEncodeYAML_RoundTrip(t *testing.T) {
	texts := []string{"", "a", "yes", "y", "null", "~", "1", "0x1", "017", "1e3", "1:30", "2001-01-01", ".inf", "<<", "=", "*a", "&a", "!a", "- a", "a: b", "a #b", "#", "---", "...", "'", `"`, "{", "[", "%", "@", "`", "|", ">",
		"a\nb", "a\nb\n", "\n", "\n\na", " a", "a ", "a\n ", "\ta", "a\tb\nc", "a\r\nb", "\r", "\x00", "\x7f", "\u0085", "\u2028", "\u2029", "\ufeff", "\ufffe", "\uffff", "\u00a0", "\U0001F98A", "é", strings.Repeat("long ", 500), strings.Repeat("x", 5000),
		"a\u2028b\nc", "x\u0085\ny ", "--- a\n...\n---\n", "a: |\n  b"}
	for _, s := range texts {
		t.Run(s[:min(len(s), 20)], func(t *testing.T) {
			assertYAMLRoundTrip(t, &Object{Object: map[string]any{"kind": "A", "v": s, "in": []any{s, map[string]any{s: s}}, "x" + s: map[string]any{s: []any{}}}})
		})
	}
	for _, v := range []any{int64(9007199254740993), 1e20, 1e300, 1.5, 5e-324, -1e-7, uint64(1<<63 + 1), nil, true, "a\nb\u2028", "a\nb\u0085", "\n\u2029", map[string]any{}, []any{}, []any{[]any{[]any{int64(1)}, map[string]any{}}}} {
		assertYAMLRoundTrip(t, &Object{Object: map[string]any{"kind": "A", "v": v}})
	}
}

func TestEncodeYAML_ErrorNamesObject(t *testing.T) {
	_, err := EncodeYAML(&Object{Object: map[string]any{"kind": "A"}}, &Object{Object: map[string]any{"a": make(chan int)}})
	assert.EqualError(t, err, "object 1: .a: cannot encode chan int")
	_, err = EncodeYAML(nil)
	assert.EqualError(t, err, "object 0: cannot encode a nil object")
	text, err := EncodeYAML()
	assert.NoError(t, err)
	assert.Empty(t, text)
}

func FuzzYAMLDecoder(f *testing.F) {
	for _, c := range streams {
		if len(c.text) < 4000 {
			f.Add([]byte(c.text))
		}
	}
	addDocuments(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := readStream(bytes.NewReader(data))
		again, errAgain := readStream(iotest.HalfReader(bytes.NewReader(data)))
		assert.Equal(t, all, again)
		assert.Equal(t, text(err), text(errAgain))
		for _, m := range all {
			assertYAMLRoundTrip(t, &Object{Object: m})
		}
		// A single document equals that of sigs.k8s.io/yaml.
		if len(all) != 1 || err != nil || bytes.Contains(data, []byte("---")) || bytes.Contains(data, []byte("...")) || bytes.ContainsAny(data, "{\ufeff") {
			return
		}
		asJSON, err := yaml.YAMLToJSON(data)
		require.NoError(t, err)
		want, err := reference(asJSON)
		require.NoError(t, err)
		if !isList(want) {
			assertIdentical(t, want, all[0])
		}
	})
}
