package plugin

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/cli/internal/command"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setPath writes executable files to a new folder, and makes the folder and more entries the PATH.
func setPath(t *testing.T, mode os.FileMode, names []string, more ...string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no mode of executable files")
	}
	folder := t.TempDir()
	for _, name := range names {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700))
		require.NoError(t, os.Chmod(path, mode))
	}
	t.Setenv("PATH", strings.Join(append([]string{folder}, more...), string(os.PathListSeparator)))
	return folder
}

func TestFind_LongestName(t *testing.T) {
	folder := setPath(t, 0o755, []string{"kubectl-foo", "kubectl-foo-bar_baz", "kubectl-create-thing"})
	for line, want := range map[string]*Plugin{
		"foo":               {filepath.Join(folder, "kubectl-foo"), []string{}},
		"foo a -x":          {filepath.Join(folder, "kubectl-foo"), []string{"a", "-x"}},
		"foo bar-baz a":     {filepath.Join(folder, "kubectl-foo-bar_baz"), []string{"a"}},
		"foo -x bar-baz":    {filepath.Join(folder, "kubectl-foo"), []string{"-x", "bar-baz"}},
		"-x foo":            nil,
		"fo":                nil,
		"../foo":            nil,
		"create thing web":  {filepath.Join(folder, "kubectl-create-thing"), []string{"web"}},
		"create-thing":      nil,
		"foo/../kubectl-fo": nil,
	} {
		assert.Equal(t, want, Find(strings.Fields(line), 1), line)
	}
	assert.Nil(t, Find([]string{"foo", "none"}, 2), "at least two words")
	assert.Equal(t, "foo", AfterFlags([]string{"-n", "shop", "foo"}))
	assert.Empty(t, AfterFlags([]string{"-n", "shop", "--", "foo"}))
}

func TestFind_RelativeFolders(t *testing.T) {
	folder := setPath(t, 0o755, []string{"kubectl-foo"})
	t.Chdir(folder)
	for _, path := range []string{".", "", "../" + filepath.Base(folder)} {
		t.Setenv("PATH", path+string(os.PathListSeparator)+"/nonexistent")
		assert.Nil(t, Find([]string{"foo"}, 1), "PATH %q", path)
	}
}

func TestList_WorldWritable(t *testing.T) {
	folder := setPath(t, 0o777, []string{"kubectl-foo"})
	var stdout bytes.Buffer
	var stderr bytes.Buffer
	list := &listCommand{State: &command.State{Streams: command.Streams{Out: &stdout, Err: &stderr}}}
	err := list.run(&cobra.Command{Use: "anyctl"})
	require.EqualError(t, err, "error: one plugin warning was found")
	path := filepath.Join(folder, "kubectl-foo")
	assert.Equal(t, "The following compatible plugins are available:\n\n"+path+"\n", stdout.String())
	assert.Equal(t, "  - warning: "+path+" can be replaced by every user of this machine\n", stderr.String())
}
