package credential

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/credentials"
	"github.com/anykind/anykind/transport/kubeconfig"
)

func TestFile_ContentReadAgainAfterMinute(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write := func(t *testing.T, path, data string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
	}
	file := &File{path: path}
	start := time.Now()
	at := func(after time.Duration) string {
		data, err := file.Content(start.Add(after))
		require.NoError(t, err)
		return string(data)
	}

	write(t, path, "first")
	assert.Equal(t, "first", at(0))
	write(t, path, "second")
	assert.Equal(t, "first", at(59*time.Second))
	assert.Equal(t, "second", at(61*time.Second))
	write(t, path, "")
	assert.Equal(t, "second", at(3*time.Minute), "an empty file is being written")
	require.NoError(t, os.Remove(path))
	assert.Equal(t, "second", at(6*time.Minute))
	write(t, path, "third")
	assert.Equal(t, "third", at(6*time.Minute), "a failed read is tried again at once")
	write(t, path, "fourth")
	file.invalidate()
	assert.Equal(t, "fourth", at(6*time.Minute))

	_, err := (&File{path: path + ".missing"}).Content(start)
	require.ErrorIs(t, err, os.ErrNotExist)
	write(t, path, "")
	_, err = (&File{path: path}).Content(start)
	require.ErrorContains(t, err, "is empty")
}

func TestStatic_NewTokenKeepsCertificate(t *testing.T) {
	certificate, key := credentials.NewCertificate(t, "ann", time.Now().Add(time.Hour))
	tokenFile := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(tokenFile, []byte("first"), 0o600))
	static, err := NewStatic(kubeconfig.User{
		TokenFile: tokenFile, ClientCertificateData: certificate, ClientKeyData: kubeconfig.NewSecretData(key),
	})
	require.NoError(t, err)
	before, err := static.Credential(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(tokenFile, []byte("second"), 0o600))
	after, err := static.Renew(t.Context(), before)
	require.NoError(t, err)
	assert.Equal(t, "Bearer second", after.Authorization)
	assert.Same(t, before.Certificate, after.Certificate, "a pool with a new certificate drops its connections")
}
