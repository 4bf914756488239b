package clustercopy

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/version"

	"github.com/anykind/anykind/unstructured"
)

func sample(t testing.TB) *Copy {
	t.Helper()
	c, err := Of(
		&unstructured.Object{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "shop", "resourceVersion": "5"},
			"data": map[string]any{"text": "line\n<&>\u2028", "number": "1"},
		}},
		&unstructured.Object{Object: map[string]any{
			"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "b"}, "size": int64(1) << 60, "ratio": 0.5,
		}},
	)
	require.NoError(t, err)
	pretty, err := unstructured.DecodeLazy([]byte("{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"Node\",\n  \"metadata\": {\"name\": \"c\"}\n}"))
	require.NoError(t, err)
	c.Objects = append(c.Objects, pretty)
	c.Version = version.Info{GitVersion: "v1.36.3"}
	c.TakenAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c.ResourceVersion = "7"
	c.Resources = []Resource{{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, ResourceVersion: "7", Subresources: []string{"status"}}}
	c.Omitted = []Omission{{Version: "v1", Resource: "secrets", Namespace: "shop", Reason: "forbidden"}}
	return c
}

func saved(t testing.TB, c *Copy) []byte {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, c.Save(&file))
	return file.Bytes()
}

func TestLoad_ReturnsWhatWasSaved(t *testing.T) {
	c := sample(t)
	loaded, err := Load(bytes.NewReader(saved(t, c)))
	require.NoError(t, err)
	for i, obj := range c.Objects {
		want, err := obj.Object()
		require.NoError(t, err)
		got, err := loaded.Objects[i].Object()
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	c.Objects = nil
	loaded.Objects = nil
	assert.Equal(t, c, loaded)
}

func TestLoad_EveryByte(t *testing.T) {
	file := saved(t, sample(t))
	for n := range file {
		_, err := Load(bytes.NewReader(file[:n]))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", n)
	}
	const headerSize = 10 // gzip's: time, operating system and flags, which are not in the checksum
	undetected := 0
	for n := headerSize; n < len(file); n++ {
		changed := bytes.Clone(file)
		changed[n] ^= 0x10
		loaded, err := Load(bytes.NewReader(changed))
		if err == nil { // the bits before the checksum that fill its first byte
			require.Equal(t, linesOf(t, file), linesOf(t, saved(t, loaded)), "byte %d", n)
			undetected++
		}
	}
	assert.LessOrEqual(t, undetected, 1)
}

// linesOf returns the decompressed lines of a file.
func linesOf(t *testing.T, file []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(file))
	require.NoError(t, err)
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(text)
}

// compress returns a file of lines.
func compress(t testing.TB, lines ...string) []byte {
	t.Helper()
	var file bytes.Buffer
	w := gzip.NewWriter(&file)
	_, err := w.Write([]byte(strings.Join(lines, "\n") + "\n"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return file.Bytes()
}

func TestLoad_InvalidFiles(t *testing.T) {
	const object = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`
	start := func(objects int) string { return fmt.Sprintf(`{"format":%q,"objects":%d}`, fileFormat, objects) }
	for name, tc := range map[string]struct {
		file []byte
		want string
	}{
		"text":             {[]byte("apiVersion: v1\nkind: Node\n"), "load a copy: not a copy of a cluster: "},
		"another format":   {compress(t, `{"format":"tar"}`), `the format is "tar"`},
		"no JSON":          {compress(t, "none"), "the header: "},
		"too few objects":  {compress(t, start(2), object), "the file ends too early"},
		"too many objects": {compress(t, start(1), object, object), "there is more than the 1 objects"},
		"no object":        {compress(t, start(1), "7"), "object 1 of 1: "},
		"no kind":          {compress(t, start(1), `{"metadata":{"name":"a"}}`), "object 1 of 1: "},
		"a long line":      {compress(t, start(1), object+strings.Repeat(" ", 2000)), "a line is longer than 1000 bytes"},
		"a large file":     {compress(t, append([]string{start(100)}, slices.Repeat([]string{object}, 100)...)...), "the objects are larger than the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(bytes.NewReader(tc.file), 1000, 4000)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestCopy_WriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.copy")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o644))
	require.NoError(t, sample(t).WriteFile(path))
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	loaded, err := ReadFile(path)
	require.NoError(t, err)
	assert.Len(t, loaded.Objects, 3)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no temporary file is left")

	broken := sample(t)
	broken.Objects = append(broken.Objects, &unstructured.Lazy{})
	require.ErrorContains(t, broken.WriteFile(path), "save the copy: ")
	_, err = ReadFile(path)
	require.NoError(t, err, "the file is unchanged")
	_, err = ReadFile(path + "none")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorIs(t, broken.WriteFile(filepath.Join(path+"none", "a")), os.ErrNotExist)
}

func FuzzLoad(f *testing.F) {
	f.Add(saved(f, sample(f)))
	f.Add(compress(f, `{"format":"anykind clustercopy 1","objects":9223372036854775807}`))
	f.Add(compress(f, strings.Repeat("a", 1<<20)))
	const limit = 64 << 10
	f.Fuzz(func(t *testing.T, file []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := load(bytes.NewReader(file), limit, limit)
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 400*limit {
			t.Errorf("%d bytes of memory for a file of %d bytes", allocated, len(file))
		}
		if err != nil {
			return
		}
		again, err := Load(bytes.NewReader(saved(t, c)))
		require.NoError(t, err)
		require.Len(t, again.Objects, len(c.Objects))
	})
}
