package manifest_test

import (
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

// folder writes files to a new folder and returns it. Names may have subfolders.
func folder(t *testing.T, files fstest.MapFS) string {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, files))
	return root
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o600} }

// read returns the names of the objects that reader reads.
func read(t *testing.T, reader *manifest.Reader) (names []string, err error) {
	t.Helper()
	objects, err := reader.Read(t.Context())
	for _, obj := range objects {
		names = append(names, obj.GetName())
	}
	return names, err
}

// fileSystems are the operating system's, with relative and absolute paths, and an fs.FS. prefix is the prefix of paths.
func fileSystems(t *testing.T, files fstest.MapFS, test func(t *testing.T, source fs.FS, prefix string)) {
	t.Helper()
	root := folder(t, files)
	t.Chdir(root)
	t.Run("relative", func(t *testing.T) { test(t, nil, "") })
	t.Run("absolute", func(t *testing.T) { test(t, nil, root+string(filepath.Separator)) })
	t.Run("FS", func(t *testing.T) { test(t, files, "") })
}

func withPrefix(prefix string, paths []string) []string {
	all := make([]string, len(paths))
	for i, path := range paths {
		all[i] = path
		if path != manifest.Stdin {
			all[i] = prefix + path
		}
	}
	return all
}

func TestReader_Read(t *testing.T) {
	files := fstest.MapFS{
		"a.yaml":        file(configMap("a1") + "---\n" + configMap("a2")),
		"b.json":        file(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`),
		"d/2.yml":       file(configMap("d2")),
		"d/1.yaml":      file("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: d1}}\n"),
		"d/inner/3.yml": file(configMap("d3")),
		"d/README.md":   file("# no manifest"),
	}
	fileSystems(t, files, func(t *testing.T, source fs.FS, prefix string) {
		for _, c := range []struct {
			paths     []string
			recursive bool
			want      []string
		}{
			{nil, false, nil},
			{[]string{"a.yaml"}, false, []string{"a1", "a2"}},
			{[]string{"b.json", "a.yaml"}, false, []string{"b", "a1", "a2"}},
			{[]string{"d"}, false, []string{"d1", "d2"}},
			{[]string{"d"}, true, []string{"d1", "d2", "d3"}},
			{[]string{"."}, true, []string{"a1", "a2", "b", "d1", "d2", "d3"}},
			{[]string{"*.yaml"}, false, []string{"a1", "a2"}},
			{[]string{"-", "b.json"}, false, []string{"in", "b"}},
		} {
			names, err := read(t, &manifest.Reader{
				Paths: withPrefix(prefix, c.paths), Recursive: c.recursive, FS: source, In: strings.NewReader(configMap("in")),
			})
			require.NoError(t, err, "%q", c.paths)
			assert.Equal(t, c.want, names, "%q", c.paths)
		}
	})
}

func TestReader_ReadErrors(t *testing.T) {
	files := fstest.MapFS{
		"good.yaml":   file(configMap("good")),
		"broken.yaml": file(configMap("first") + "---\n" + configMap("second") + "  labels: [\n"),
		"kind.yaml":   file("# a comment\n---\n" + configMap("kinds") + "---\nmetadata: {name: x}\n"),
		"none/README": file(""),
	}
	fileSystems(t, files, func(t *testing.T, source fs.FS, prefix string) {
		for _, c := range []struct {
			paths []string
			names []string
			want  string
		}{
			{[]string{"missing.yaml", "good.yaml"}, nil, `missing.yaml" does not exist`},
			{[]string{"[.yaml"}, nil, "syntax error in pattern"},
			{[]string{"none"}, nil, "none]: recognized file extensions are [.json .yaml .yml]"},
			{[]string{"broken.yaml", "good.yaml"}, []string{"first", "good"}, "broken.yaml: document 2, line "},
			{[]string{"kind.yaml"}, []string{"kinds"}, "kind.yaml: document 2, line 8: "},
			{[]string{"-", "-"}, nil, "standard input cannot be used for multiple arguments"},
			{[]string{"-"}, nil, "read -: the program has no standard input (name a file)"},
		} {
			names, err := read(t, &manifest.Reader{Paths: withPrefix(prefix, c.paths), FS: source})
			assert.ErrorContains(t, err, c.want, "%q", c.paths)
			assert.Equal(t, c.names, names, "%q", c.paths)
		}
	})
}

func TestReader_AllStreams(t *testing.T) {
	files := fstest.MapFS{
		"a.yaml": file(configMap("first") + "---\n" + configMap("second") + "  labels: [\n"),
		"b.yaml": file(configMap("third")),
	}
	all := (&manifest.Reader{Paths: []string{"a.yaml", "b.yaml"}, FS: files}).All(t.Context())
	for range 2 {
		var got []string
		for obj, err := range all {
			if err != nil {
				assert.ErrorContains(t, err, "a.yaml: document 2")
				got = append(got, "error")
				continue
			}
			got = append(got, obj.GetName())
		}
		assert.Equal(t, []string{"first", "error", "third"}, got)
	}
	for obj, err := range all { // before the broken document
		require.NoError(t, err)
		assert.Equal(t, "first", obj.GetName())
		break
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errs []error
	for _, err := range (&manifest.Reader{Paths: []string{"b.yaml", "a.yaml"}, FS: files}).All(ctx) {
		cancel()
		errs = append(errs, err)
	}
	require.Len(t, errs, 2)
	assert.NoError(t, errs[0])
	assert.ErrorIs(t, errs[1], context.Canceled)
}

func TestDecode_PositionsOfObjects(t *testing.T) {
	objects, err := manifest.Decode("web.yaml", strings.NewReader(configMap("a")+"---\n# comment\n"+configMap("b")))
	require.NoError(t, err)
	require.Len(t, objects, 2)
	assert.Equal(t, "web.yaml: document 1, line 1", objects[0].Position())
	assert.Equal(t, "web.yaml: document 2, line 7", objects[1].Position())
}

func TestReader_StopsReadingStdin(t *testing.T) {
	in, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.WriteString(write, "#") // returns when it is read
		cancel()
	}()
	reader := &manifest.Reader{Paths: []string{"broken.yaml", manifest.Stdin}, FS: fstest.MapFS{"broken.yaml": file("[")}, In: in}
	_, err := reader.Read(ctx)
	require.ErrorContains(t, err, "broken.yaml: document 1")
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, write.Close())
}

func TestFromObjects_Positions(t *testing.T) {
	generated := &unstructured.Object{Object: map[string]any{"kind": "Pod"}}
	objects := manifest.FromObjects(generated, generated)
	assert.Same(t, generated, objects[1].Object)
	assert.Equal(t, "object 2", objects[1].Position())
	assert.Empty(t, (&manifest.Object{Object: generated}).Position())
}

func TestCollect_ObjectsBeforeError(t *testing.T) {
	broken := strings.NewReader(configMap("a") + "---\n" + configMap("b") + "---\nmetadata: {name: c}\n")
	objects, err := manifest.Collect("generator", unstructured.NewYAMLDecoder(broken).All())
	require.ErrorContains(t, err, "generator: document 3, line 11: ")
	require.Len(t, objects, 2)
	assert.Equal(t, "b in generator: object 2", objects[1].GetName()+" in "+objects[1].Position())
}

func TestValidate_RejectsDuplicatesAndUnnamed(t *testing.T) {
	const text = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}
---
{apiVersion: v1, kind: Secret, metadata: {name: a}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: home}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}
`
	for name, c := range map[string]struct {
		more string
		want string
	}{
		"distinct":          {"", ""},
		"duplicate":         {"{apiVersion: v1, kind: Secret, metadata: {name: a}}", `b.yaml: document 1, line 1: Secret "a" is a duplicate of a.yaml: document 3, line 6 (remove either)`},
		"default namespace": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: home}}", `b.yaml: document 1, line 1: ConfigMap "home/a" is a duplicate of a.yaml: document 1, line 2 (remove either)`},
		"other version":     {"{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: a}}", `b.yaml: document 1, line 1: Deployment "a" is a duplicate of a.yaml: document 4, line 8 (remove either)`},
		"no name":           {"{apiVersion: v1, kind: Secret}", `b.yaml: document 1, line 1: Secret has no name (set metadata.name)`},
		"generateName":      {"{apiVersion: batch/v1, kind: Job, metadata: {generateName: job-}}", `b.yaml: document 1, line 1: Job "job-" has a generateName and cannot be applied (set metadata.name)`},
		"all errors": {"{apiVersion: v1, kind: Secret}\n---\n{apiVersion: v1, kind: Secret, metadata: {name: a}}", "b.yaml: document 1, line 1: Secret has no name (set metadata.name)\n" +
			`b.yaml: document 2, line 3: Secret "a" is a duplicate of a.yaml: document 3, line 6 (remove either)`},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.Decode("a.yaml", strings.NewReader(text))
			require.NoError(t, err)
			more, err := manifest.Decode("b.yaml", strings.NewReader(c.more))
			require.NoError(t, err)
			err = manifest.Validate(append(objects, more...), "home")
			if c.want == "" {
				assert.NoError(t, err)
			} else {
				assert.EqualError(t, err, c.want)
			}
		})
	}
}

func TestValidate_ObjectsOfProgram(t *testing.T) {
	named := &unstructured.Object{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"}}}
	objects := append(manifest.FromObjects(named, nil, &unstructured.Object{}, &unstructured.Object{Object: map[string]any{"kind": "Pod"}}), nil,
		&manifest.Object{Object: named}, &manifest.Object{Object: named, Source: "generator"})
	assert.EqualError(t, manifest.Validate(objects, ""), "object 2: the object is nil\nobject 3: the object has no kind\n"+
		"object 4: Pod \"\" has no apiVersion\nobject 5: the object is nil\nPod \"a\" is a duplicate of object 1 (remove either)\n"+
		"generator: Pod \"a\" is a duplicate of object 1 (remove either)")
}

//go:embed testdata
var deploy embed.FS

func ExampleReader_fS() {
	reader := manifest.Reader{FS: deploy, Paths: []string{"testdata"}}
	objects, err := reader.Read(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, obj := range objects {
		fmt.Printf("%s %s (%s)\n", obj.GetKind(), obj.GetName(), obj.Position())
	}
	// Output:
	// ConfigMap settings (testdata/web.yaml: document 1, line 1)
	// Deployment web (testdata/web.yaml: document 2, line 5)
}

func ExampleValidate() {
	objects, err := manifest.Decode("web.yaml", strings.NewReader(configMap("a")+"---\n"+configMap("a")))
	if err == nil {
		err = manifest.Validate(objects, "shop")
	}
	fmt.Println(err)
	// Output:
	// web.yaml: document 2, line 6: ConfigMap "a" is a duplicate of web.yaml: document 1, line 1 (remove either)
}

func TestObject_FieldLine(t *testing.T) {
	const text = `# a comment
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - name: x
    image: y
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod}
- apiVersion: v1
  kind: PodList
  items:
  - kind: Pod
    apiVersion: v1
    spec: &spec
      nodeName: b
  - {kind: Pod, apiVersion: v1,
     spec: *spec}
---
{"kind": "Pod", "apiVersion": "v1"}
{"kind": "Pod", "apiVersion": "v1",
 "spec": {
  "nodeName": "c"}}
`
	reader := &manifest.Reader{Paths: []string{manifest.Stdin}, In: strings.NewReader(text), FieldLines: true}
	objects, err := reader.Read(t.Context())
	require.NoError(t, err)
	require.Len(t, objects, 6)
	for _, c := range []struct {
		object int
		path   []any
		want   int
	}{
		{0, nil, 3}, {0, []any{"metadata", "name"}, 5}, {0, []any{"spec", "containers", 0, "image"}, 9}, {0, []any{"spec", "containers", 0, "missing", "x"}, 8},
		{0, []any{"spec", "containers", 7}, 7}, {0, []any{"spec"}, 6}, {0, []any{0}, 3},
		{1, []any{"kind"}, 14}, {2, []any{"spec", "nodeName"}, 21}, {3, []any{"spec"}, 23}, {3, []any{"spec", "nodeName"}, 21},
		{4, []any{"kind"}, 25}, {5, []any{"spec", "nodeName"}, 28},
	} {
		assert.Equal(t, c.want, objects[c.object].FieldLine(c.path...), "object %d: %v", c.object, c.path)
	}
	assert.Equal(t, 1, (&manifest.Object{Line: 1}).FieldLine("spec"))
}
