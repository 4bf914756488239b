package edit

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const oldContent, newContent = "current-context: the-old-one-is-longer\n", "current-context: b\n"

var errDisk = errors.New("disk full")

// newMountedFile returns a kubeconfig file and a replacer whose renames fail.
func newMountedFile(t *testing.T, renameErr error) (path string, r *replacer) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(oldContent), 0o600))
	r = newReplacer()
	r.rename = func(from, to string) error { return &os.LinkError{Op: "rename", Old: from, New: to, Err: renameErr} }
	return path, r
}

func readFolder(t *testing.T, path string) map[string]string {
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

func TestReplacer_OverwritesMountedFile(t *testing.T) {
	for _, renameErr := range []error{syscall.EBUSY, syscall.EXDEV, syscall.EPERM, syscall.EACCES} {
		path, r := newMountedFile(t, renameErr)
		before, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, r.replace(path, []byte(oldContent), []byte(newContent)), "%v", renameErr)
		after, err := os.Stat(path)
		require.NoError(t, err)
		assert.True(t, os.SameFile(before, after))
		assert.Equal(t, map[string]string{"config": newContent}, readFolder(t, path))
	}
}

func TestReplacer_ReturnsOtherErrors(t *testing.T) {
	path, r := newMountedFile(t, syscall.EIO)
	require.ErrorIs(t, r.replace(path, []byte(oldContent), []byte(newContent)), syscall.EIO)
	assert.Equal(t, map[string]string{"config": oldContent}, readFolder(t, path))
}

func TestReplacer_RestoresAfterPartialWrite(t *testing.T) {
	path, r := newMountedFile(t, syscall.EBUSY)
	r.write = func(file *os.File, data []byte) error {
		if string(data) == oldContent {
			return overwrite(file, data)
		}
		_, _ = file.WriteAt(data[:5], 0)
		return errDisk
	}
	err := r.replace(path, []byte(oldContent), []byte(newContent))
	require.ErrorIs(t, err, errDisk)
	require.ErrorIs(t, err, syscall.EBUSY)
	assert.Equal(t, map[string]string{"config": oldContent}, readFolder(t, path))
}

func TestReplacer_KeepsNewContentIfRestoreFails(t *testing.T) {
	path, r := newMountedFile(t, syscall.EBUSY)
	r.write = func(file *os.File, data []byte) error {
		_, _ = file.WriteAt(data[:5], 0)
		return errDisk
	}
	err := r.replace(path, []byte(oldContent), []byte(newContent))
	require.ErrorIs(t, err, errDisk)
	left := readFolder(t, path)
	delete(left, "config")
	require.Len(t, left, 1)
	for name, text := range left {
		assert.Equal(t, newContent, text)
		assert.Contains(t, err.Error(), name)
	}
}
