package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxSize is the limit of the stripped program for linux/amd64, in bytes.
const maxSize = 20_000_000

// TestAnyctl_Size fails when an import makes anyctl large: a call of reflect's MethodByName alone adds 3 MB.
func TestAnyctl_Size(t *testing.T) {
	path := filepath.Join(t.TempDir(), "anyctl")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", path, ".")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64") // no further flags: its packages are then compiled for the other tests, too
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	file, err := os.Stat(path)
	require.NoError(t, err)
	assert.Less(t, file.Size(), int64(maxSize))
}
