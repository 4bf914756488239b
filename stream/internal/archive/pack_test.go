package archive

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPack_FileReplacedByLink(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	local := filepath.Join(dir, "local")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	require.NoError(t, os.WriteFile(local, []byte("public"), 0o600))
	err := Pack(io.Discard, local, "x", func(now Progress) {
		if now.Done == 0 { // it was looked at, and is opened next
			require.NoError(t, os.Remove(local))
			require.NoError(t, os.Symlink(secret, local))
		}
	})
	require.ErrorContains(t, err, "it was replaced while it was copied")
}
