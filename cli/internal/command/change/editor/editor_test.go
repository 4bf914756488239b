//go:build !windows

package editor

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/internal/command"
)

func TestEditor_EditRunsCommand(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "with space")
	require.NoError(t, os.Mkdir(folder, 0o700))
	t.Setenv("TMPDIR", folder)
	t.Setenv("EDITOR", "false")
	for _, command := range []string{
		"sed -i s/old/new/",
		`sed -i "s/old/new/"`,
		`sed -i 's/o\(ld\)/new/'`,
		" sed  -i s/old/new/ ",
	} {
		t.Setenv("KUBE_EDITOR", command)
		path, edited, err := New(streams()).Edit(t.Context(), ".yaml", "old text\n")
		require.NoError(t, err, command)
		assert.Equal(t, "new text\n", edited, command)
		assert.FileExists(t, path)
		require.NoError(t, os.Remove(path))
	}
}

func TestEditor_EditKeepsFileOnError(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("KUBE_EDITOR", "")
	t.Setenv("EDITOR", "false")
	path, _, err := New(streams()).Edit(t.Context(), ".yaml", "text")
	require.EqualError(t, err, `there was a problem with the editor "false": exit status 1`)
	assert.FileExists(t, path)
}

func streams() command.Streams {
	return command.Streams{In: bytes.NewReader(nil), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}
}

func TestHeader_IsRemoved(t *testing.T) {
	for _, reasons := range []string{"", "one reason", "deploy was not valid:\n* spec.replicas: Invalid value\n"} {
		assert.Equal(t, "kind: Pod\n# kept\n", WithoutHeader(Header(reasons)+"kind: Pod\n# kept\n"), "%q", reasons)
	}
	assert.Empty(t, WithoutHeader("# only"))
}
