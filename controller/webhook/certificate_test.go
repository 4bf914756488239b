package webhook_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/controller/webhook"
	"github.com/anykind/anykind/internal/testing/credentials"
)

// mount writes a pair of files as the kubelet mounts a Secret: the link ..data is replaced.
func mount(t *testing.T, dir, version string, certificate, key []byte) {
	t.Helper()
	require.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, version, "tls.crt"), certificate, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, version, "tls.key"), key, 0o600))
	link := filepath.Join(dir, "..data_tmp")
	require.NoError(t, os.Symlink(version, link))
	require.NoError(t, os.Rename(link, filepath.Join(dir, "..data")))
}

func TestCertificate_ReloadsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		c := webhook.NewCertificate(filepath.Join(dir, "..data", "tls.crt"), filepath.Join(dir, "..data", "tls.key"))
		config := c.TLSConfig()
		served := func() string {
			time.Sleep(time.Second)
			current, err := config.GetCertificate(&tls.ClientHelloInfo{})
			if err != nil {
				return err.Error()
			}
			return current.Leaf.Subject.CommonName
		}
		probe := func() int {
			w := httptest.NewRecorder()
			c.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
			return w.Code
		}
		assert.Contains(t, served(), "load the serving certificate of the webhook: open "+dir)
		assert.Equal(t, http.StatusServiceUnavailable, probe())
		first, firstKey := credentials.NewCertificate(t, "first", time.Now().Add(48*time.Hour))
		second, secondKey := credentials.NewCertificate(t, "second", time.Now().Add(24*time.Hour))
		mount(t, dir, "..1", first, firstKey)
		assert.Equal(t, "first", served())
		assert.Equal(t, http.StatusOK, probe())
		mount(t, dir, "..2", second, firstKey)
		assert.Equal(t, "first", served(), "the key of a different certificate")
		assert.Equal(t, http.StatusOK, probe())
		mount(t, dir, "..3", second, secondKey)
		assert.Equal(t, "second", served())
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "..3")))
		assert.Equal(t, "second", served())
		time.Sleep(25 * time.Hour)
		assert.Equal(t, http.StatusServiceUnavailable, probe(), "expired")
	})
}
