package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWrite_ReplacesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, Write(path, []byte("old"), 0o600, nil))
	require.NoError(t, Write(path, []byte("new"), 0o600, nil))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "new", string(data))
}

func TestWrite_AnErrorKeepsTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	require.NoError(t, Write(path, []byte("old"), 0o600, nil))
	cause := errors.New("no")
	require.ErrorIs(t, Write(path, []byte("new"), 0o600, func(string) error { return cause }), cause)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "old", string(data))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "the new file is removed")
}
