//go:build unix

package discovery

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSave_RespectsUmask(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot.json")
	for umask, want := range map[int]fs.FileMode{0o077: 0o600, 0o022: 0o644, 0o027: 0o640} {
		old := syscall.Umask(umask)
		err := savedSample().Save(path)
		syscall.Umask(old)
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode(), "%o", umask)
	}
}
