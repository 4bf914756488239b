//go:build unix

package archive

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// diskUsage returns how many bytes of the disk a file takes up.
func diskUsage(t *testing.T, path string) (int64, bool) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return stat.Blocks * 512, true
}
