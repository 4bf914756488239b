package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/unstructured"
)

// minDefinitions is how many definitions of projects tests and benchmarks rely on.
const minDefinitions = 400

func TestEnsure_CollectsEnoughDefinitions(t *testing.T) {
	dir, err := ensure(t.Context())
	require.NoError(t, err)
	index, err := readIndex(dir)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(index.CRDs), minDefinitions)
	assert.GreaterOrEqual(t, len(index.Synthetic), 30)
	assert.GreaterOrEqual(t, len(index.Objects), 2000)
	kinds := map[string]bool{}
	for _, f := range index.Objects {
		kinds[f.Group+"/"+f.Kind] = true
	}
	assert.GreaterOrEqual(t, len(kinds), 250)
	for _, f := range append(append(index.CRDs, index.Synthetic...), index.Objects...) {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(f.File)))
		require.NoError(t, err)
		object, err := unstructured.Decode(text)
		require.NoError(t, err, f.File)
		assert.Equal(t, f.Name, object.GetName(), f.File)
	}
	again, err := ensure(t.Context())
	require.NoError(t, err)
	assert.Equal(t, dir, again)
	var out bytes.Buffer
	index.print(&out)
	assert.Contains(t, out.String(), "github.com/cert-manager/cert-manager@v")
}

func TestParseModules_RejectsIncompleteLines(t *testing.T) {
	modules, err := parseModules("# comment\n\nexample.com/a v1.0.0 h1:x\n")
	require.NoError(t, err)
	assert.Equal(t, []module{{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:x"}}, modules)
	_, err = parseModules("example.com/a v1.0.0")
	assert.ErrorContains(t, err, "modules.txt line 1")
	_, err = parseModules(moduleList)
	assert.NoError(t, err)
}

const widgets = `apiVersion: apiextensions.k8s.io/%s
kind: CustomResourceDefinition
metadata: {name: widgets.widgets.org}
spec:
  group: widgets.org
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions: [{name: %s, served: true, storage: true}]
`

func TestCollect_TakesEachObjectOnce(t *testing.T) {
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	write := func(name, text string) {
		t.Helper()
		file, err := archive.Create("widgets.org/widgets@v1.2.3/" + name)
		require.NoError(t, err)
		_, err = io.WriteString(file, text)
		require.NoError(t, err)
	}
	crd := func(api, version string) string {
		return strings.Replace(strings.Replace(widgets, "%s", api, 1), "%s", version, 1)
	}
	write("testdata/crd.yaml", crd("v1", "ofTestData"))
	write("config/crd/bases/deep/crd.yaml", crd("v1", "ofALongerPath"))
	write("crds/old.yaml", crd("v1beta1", "ofAnOldAPI"))
	write("crds/widgets.yaml", crd("v1", "theOne"))
	write("examples/crd.yaml", strings.ReplaceAll(crd("v1", "ofAnExample"), "widgets.org", "example.com"))
	write("chart/templates/crd.yaml", "{{- if .Values.crds }}\n"+crd("v1", "ofATemplate")+"{{- end }}\n")
	write("samples/a.yml", "kind: Widget\napiVersion: widgets.org/v1\nmetadata: {name: a}\n---\n{{ broken\n---\nkind: Widget\napiVersion: widgets.org/v1\nmetadata: {name: b}\n")
	write("samples/again.yaml", "metadata: {name: a}\napiVersion: widgets.org/v1\nkind: Widget\n")
	write("samples/kustomization.yaml", "resources: [a.yml]\n")
	write("samples/readme.md", "kind: Widget\n")

	require.NoError(t, archive.Close())
	name := filepath.Join(t.TempDir(), "widgets.zip")
	require.NoError(t, os.WriteFile(name, packed.Bytes(), 0o600))
	modules := []module{{Path: "widgets.org/widgets", Version: "v1.2.3", Zip: name}}
	c, err := collect(modules)
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "corpus")
	require.NoError(t, publish(out, func(dir string) error { return c.write(dir, modules) }))
	index, err := readIndex(out)
	require.NoError(t, err)
	require.Len(t, index.CRDs, 1)
	assert.Equal(t, IndexFile{"widgets.widgets.org", "widgets.org", "Widget", "crds/widgets.widgets.org.json", "widgets.org/widgets@v1.2.3/crds/widgets.yaml"}, index.CRDs[0])
	require.Len(t, index.Objects, 2)
	assert.Equal(t, []string{"a", "b"}, []string{index.Objects[0].Name, index.Objects[1].Name})
	assert.Equal(t, 9, index.Files)
	assert.Equal(t, 3, index.Unreadable, "the template, the broken document and the kustomization")
	require.NoError(t, publish(out, func(string) error { return nil }), "another process was faster")
}

func TestFileName_StaysInFolder(t *testing.T) {
	for text, want := range map[string]string{"a.b-C": "a.b-C", "../x": ".._x", "Kind/é": "Kind__"} {
		assert.Equal(t, want, fileName(text))
	}
	for _, text := range []string{"", ".", "..", strings.Repeat("x", 300)} {
		name := fileName(text)
		assert.NotContains(t, []string{"", ".", ".."}, name)
		assert.LessOrEqual(t, len(name), 120)
	}
}

func TestRun_RejectsArguments(t *testing.T) {
	assert.ErrorContains(t, run(t.Context(), []string{"crds"}), `unexpected argument "crds"`)
}
