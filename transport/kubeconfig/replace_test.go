package kubeconfig

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const oldText, newText = "current-context: the-old-one-is-longer\n", "current-context: b\n"

var errDisk = errors.New("disk full")

// mounted returns a kubeconfig file and a replacer that cannot rename over it.
func mounted(t *testing.T, refused error) (path string, r *replacer) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(oldText), 0o600))
	r = newReplacer()
	r.rename = func(from, to string) error { return &os.LinkError{Op: "rename", Old: from, New: to, Err: refused} }
	return path, r
}

func files(t *testing.T, path string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	found := map[string]string{}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(path), entry.Name()))
		require.NoError(t, err)
		found[entry.Name()] = string(data)
	}
	return found
}

func TestReplacer_WritesMountedFileInPlace(t *testing.T) {
	for _, refused := range []error{syscall.EBUSY, syscall.EXDEV, syscall.EPERM, syscall.EACCES} {
		path, r := mounted(t, refused)
		before, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, r.replace(path, []byte(oldText), []byte(newText)), "%v", refused)
		after, err := os.Stat(path)
		require.NoError(t, err)
		assert.True(t, os.SameFile(before, after))
		assert.Equal(t, map[string]string{"config": newText}, files(t, path))
	}
}

func TestReplacer_ReturnsOtherErrors(t *testing.T) {
	path, r := mounted(t, syscall.EIO)
	require.ErrorIs(t, r.replace(path, []byte(oldText), []byte(newText)), syscall.EIO)
	assert.Equal(t, map[string]string{"config": oldText}, files(t, path))
}

func TestReplacer_UndoesHalfAWrite(t *testing.T) {
	path, r := mounted(t, syscall.EBUSY)
	r.write = func(file *os.File, data []byte) error {
		if string(data) == oldText {
			return overwrite(file, data)
		}
		_, _ = file.WriteAt(data[:5], 0)
		return errDisk
	}
	err := r.replace(path, []byte(oldText), []byte(newText))
	require.ErrorIs(t, err, errDisk)
	require.ErrorIs(t, err, syscall.EBUSY)
	assert.Equal(t, map[string]string{"config": oldText}, files(t, path))
}

func TestReplacer_KeepsContentOfBrokenWrite(t *testing.T) {
	path, r := mounted(t, syscall.EBUSY)
	r.write = func(file *os.File, data []byte) error {
		_, _ = file.WriteAt(data[:5], 0)
		return errDisk
	}
	err := r.replace(path, []byte(oldText), []byte(newText))
	require.ErrorIs(t, err, errDisk)
	left := files(t, path)
	delete(left, "config")
	require.Len(t, left, 1)
	for name, text := range left {
		assert.Equal(t, newText, text)
		assert.Contains(t, err.Error(), name)
	}
}
