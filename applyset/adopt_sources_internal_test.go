package applyset

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/unstructured"
)

// release returns a Secret of Helm with a release, compressed if it is not empty.
func release(t testing.TB, text io.Reader) *unstructured.Object {
	t.Helper()
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, err := io.Copy(writer, text)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	return releaseSecret(compressed.Bytes())
}

func releaseSecret(raw []byte) *unstructured.Object {
	inner := base64.StdEncoding.EncodeToString(raw)
	return &unstructured.Object{Object: map[string]any{"data": map[string]any{"release": base64.StdEncoding.EncodeToString([]byte(inner))}}}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestReleaseManifest_Forms(t *testing.T) {
	const text = `{"name":"shop","manifest":"a: b"}`
	for _, secret := range []*unstructured.Object{release(t, strings.NewReader(text)), releaseSecret([]byte(text))} {
		manifest, err := releaseManifest(secret)
		require.NoError(t, err)
		assert.Equal(t, "a: b", manifest)
	}
	for want, secret := range map[string]*unstructured.Object{
		"malformed release": releaseSecret(nil),
		"exceeds 64 MiB":    release(t, io.LimitReader(zeros{}, maxRelease+1)),
		"data.release":      {Object: map[string]any{"data": map[string]any{"release": "?"}}},
		"illegal base64":    {Object: map[string]any{"data": map[string]any{"release": "Pz8/"}}},
		"not string":        {Object: map[string]any{"data": map[string]any{"release": int64(1)}}},
	} {
		_, err := releaseManifest(secret)
		assert.ErrorContains(t, err, want)
	}
}

func FuzzReleaseManifest(f *testing.F) {
	f.Add([]byte(`{"manifest":"a: b"}`))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if text, err := releaseManifest(releaseSecret(raw)); err != nil {
			require.Empty(t, text)
		}
	})
}

func FuzzParseInventoryID(f *testing.F) {
	f.Add("shop_web_apps_Deployment")
	f.Add("_a__b__ConfigMap")
	f.Fuzz(func(t *testing.T, id string) {
		ref, err := parseInventoryID(id)
		if err != nil {
			require.Equal(t, Reference{}, ref)
			return
		}
		require.NotEmpty(t, ref.Name)
		require.NotEmpty(t, ref.Kind.Kind)
		again, err := parseInventoryID(ref.Namespace + "_" + strings.ReplaceAll(ref.Name, ":", "__") + "_" + ref.Kind.Group + "_" + ref.Kind.Kind)
		require.NoError(t, err)
		require.Equal(t, ref, again)
	})
}
