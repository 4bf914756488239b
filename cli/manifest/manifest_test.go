package manifest_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/manifest"
)

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

// folder writes files to a new folder and returns it. Names may have subfolders.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

// read parses arguments as a command does and reads, with paths in root.
func read(t *testing.T, root, stdin string, args ...string) (names []string, err error) {
	t.Helper()
	t.Chdir(root)
	reader := &manifest.Reader{In: strings.NewReader(stdin)}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	reader.AddFlags(fs, "to read")
	require.NoError(t, fs.Parse(args))
	objects, err := reader.Read(t.Context())
	for _, obj := range objects {
		names = append(names, obj.GetName())
	}
	return names, err
}

func TestReader_Read(t *testing.T) {
	root := folder(t, map[string]string{
		"a.yaml":        configMap("a1") + "---\n" + configMap("a2"),
		"b.json":        `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`,
		"d/2.yml":       configMap("d2"),
		"d/1.yaml":      "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: d1}}\n",
		"d/inner/3.yml": configMap("d3"),
		"d/README.md":   "# no manifest",
	})
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"-f", "a.yaml"}, []string{"a1", "a2"}},
		{[]string{"-f", "b.json,a.yaml"}, []string{"b", "a1", "a2"}},
		{[]string{"-f", "d"}, []string{"d1", "d2"}},
		{[]string{"-f", "d", "-R"}, []string{"d1", "d2", "d3"}},
		{[]string{"-f", "*.yaml"}, []string{"a1", "a2"}},
		{[]string{"-f", "-", "-f", "b.json"}, []string{"in", "b"}},
	} {
		names, err := read(t, root, configMap("in"), c.args...)
		require.NoError(t, err, "%q", c.args)
		assert.Equal(t, c.want, names, "%q", c.args)
	}
}

func TestReader_ReadErrors(t *testing.T) {
	root := folder(t, map[string]string{
		"good.yaml":   configMap("good"),
		"broken.yaml": configMap("first") + "---\n" + configMap("second") + "  labels: [\n",
		"kind.yaml":   "# a comment\n---\n" + configMap("kinds") + "---\nmetadata: {name: x}\n",
		"none/README": "",
	})
	for _, c := range []struct {
		args  []string
		names []string
		want  string
	}{
		{[]string{"-f", "missing.yaml", "-f", "good.yaml"}, nil, `the path "missing.yaml" does not exist`},
		{[]string{"-f", "none"}, nil, "error reading [none]: recognized file extensions are [.json .yaml .yml]"},
		{[]string{"-f", "broken.yaml,good.yaml"}, []string{"first", "good"}, "broken.yaml: document 2, line "},
		{[]string{"-f", "kind.yaml"}, []string{"kinds"}, "kind.yaml: document 2, line 8: "},
		{[]string{"-f", "-", "-f", "-"}, nil, "standard input cannot be used for multiple arguments"},
		{[]string{"-k", "base"}, nil, "-k is not supported (run: kustomize build base | "},
		{[]string{"-f", "https://example.com/a.yaml"}, nil, "manifests are not downloaded"},
	} {
		names, err := read(t, root, "", c.args...)
		assert.ErrorContains(t, err, c.want, "%q", c.args)
		assert.Equal(t, c.names, names, "%q", c.args)
	}
}

func TestReader_PositionsOfObjects(t *testing.T) {
	objects, err := manifest.Decode("web.yaml", strings.NewReader(configMap("a")+"---\n# comment\n"+configMap("b")))
	require.NoError(t, err)
	require.Len(t, objects, 2)
	assert.Equal(t, "web.yaml: document 1, line 1", objects[0].Position())
	assert.Equal(t, "web.yaml: document 2, line 7", objects[1].Position())
}

func TestReader_StopsReadingStdin(t *testing.T) {
	in, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	reader := &manifest.Reader{Paths: []string{manifest.Stdin}, In: in}
	_, err := reader.Read(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, write.Close())
}

func TestInstallOrder_KeepsPositions(t *testing.T) {
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
	objects, err := manifest.Decode("all.yaml", strings.NewReader(configMap("a")+"---\n"+configMap("b")+"---\n"+namespace))
	require.NoError(t, err)
	ordered, err := manifest.InstallOrder(objects, "shop")
	require.NoError(t, err)
	var positions []string
	for _, obj := range ordered {
		positions = append(positions, obj.GetName()+" in "+obj.Position())
	}
	assert.Equal(t, []string{"shop in all.yaml: document 3, line 11", "a in all.yaml: document 1, line 1", "b in all.yaml: document 2, line 6"}, positions)

	objects[0].SetAnnotations(map[string]string{"config.kubernetes.io/depends-on": "/namespaces/shop/ConfigMap/a"})
	_, err = manifest.InstallOrder(objects, "shop")
	assert.ErrorContains(t, err, `dependency cycle: ConfigMap "a" → ConfigMap "a"`)
}
