package stream_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/stream"
)

// tree makes a folder with a bit of everything.
func tree(t *testing.T) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "tree")
	when := time.Date(2021, 2, 3, 4, 5, 6, 0, time.UTC)
	require.NoError(t, os.MkdirAll(filepath.Join(at, "sub/empty"), 0o755))
	for name, text := range map[string]string{
		"empty": "", "-dash": "x", "sub/with space\nand line": "y", "sub/large": strings.Repeat("0123456789", 300_000),
		"sub/" + strings.Repeat("long", 50): "z",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o640))
		require.NoError(t, os.Chtimes(filepath.Join(at, name), when, when))
	}
	require.NoError(t, os.WriteFile(filepath.Join(at, "run"), []byte("#!/bin/sh"), 0o755))
	require.NoError(t, os.Symlink("sub/large", filepath.Join(at, "link")))
	require.NoError(t, os.Symlink("../run", filepath.Join(at, "sub/up")))
	require.NoError(t, os.Link(filepath.Join(at, "run"), filepath.Join(at, "sub/hard")))
	require.NoError(t, os.Chmod(filepath.Join(at, "sub/empty"), 0o500))
	return at
}

// described lists a tree, a line for each entry.
func described(t *testing.T, at string) (lines []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(at, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		below, err := filepath.Rel(at, path)
		require.NoError(t, err)
		line := fmt.Sprint(below, " ", info.Mode())
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			line += fmt.Sprintf(" %v %d %.20q", info.ModTime().Unix(), len(text), text)
		case info.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			require.NoError(t, err)
			line += " " + target
		}
		lines = append(lines, line)
		return nil
	}))
	return lines
}

func TestCopy_RoundTrip(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	from := tree(t)
	there := filepath.Join(t.TempDir(), "new/folder/copy")
	back := filepath.Join(t.TempDir(), "back")
	var in, out []stream.CopyProgress
	for range 2 { // the second time over the first
		in = nil
		out = nil
		require.NoError(t, stream.CopyTo(t.Context(), pods, "web-0", from, there, &stream.CopyOptions{
			Container: "web", OnProgress: func(p stream.CopyProgress) { in = append(in, p) },
		}))
		assert.Equal(t, described(t, from), described(t, there))
		require.NoError(t, stream.CopyFrom(t.Context(), pods, "web-0", there+"/", back, &stream.CopyOptions{
			OnProgress: func(p stream.CopyProgress) { out = append(out, p) },
		}))
		assert.Equal(t, described(t, from), described(t, back))
	}
	for _, progress := range [][]stream.CopyProgress{in, out} {
		assert.Equal(t, stream.CopyProgress{Path: "."}, progress[0])
		steps := 0
		for _, step := range progress {
			if step.Path == "sub/large" {
				steps++
			}
		}
		assert.Equal(t, 4, steps) // at its beginning, after each MiB, and at its end
		assert.Greater(t, progress[len(progress)-1].Total, int64(3_000_000))
	}

	one := filepath.Join(t.TempDir(), "-one")
	require.NoError(t, stream.CopyFrom(t.Context(), pods, "web-0", filepath.Join(there, "-dash"), one, nil))
	text, err := os.ReadFile(one)
	require.NoError(t, err)
	assert.Equal(t, "x", string(text))
	require.NoError(t, stream.CopyTo(t.Context(), pods, "web-0", one, filepath.Join(there, "sub", "-two"), nil))
	assert.FileExists(t, filepath.Join(there, "sub", "-two"))
}

func TestCopy_Errors(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	local := filepath.Join(t.TempDir(), "copy")
	none := filepath.Join(t.TempDir(), "none")
	err := stream.CopyFrom(t.Context(), pods, "web-0", none, local, nil)
	var exited *stream.ExitError
	require.ErrorAs(t, err, &exited)
	require.ErrorContains(t, err, "No such file")
	require.NoFileExists(t, local)

	err = stream.CopyFrom(t.Context(), pods, "none", none, local, nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.ErrorContains(t, err, `copy from pod "none"`)

	require.ErrorIs(t, stream.CopyTo(t.Context(), pods, "web-0", none, local, nil), fs.ErrNotExist)
	require.ErrorContains(t, stream.CopyTo(t.Context(), pods, "web-0", t.TempDir(), "/tmp/", nil), "must be the copy's own")
	require.ErrorContains(t, stream.CopyFrom(t.Context(), pods, "web-0", "", local, nil), "a path is empty")

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	err = stream.CopyTo(t.Context(), pods, "web-0", tree(t), filepath.Join(file, "sub"), nil)
	require.ErrorAs(t, err, &exited)
	require.ErrorContains(t, err, "mkdir")

	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.Mkdir(outside, 0o700))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(outside, "link")))
	err = stream.CopyFrom(t.Context(), pods, "web-0", outside, local, nil)
	require.ErrorContains(t, err, "outside of the copied folder")

	ctx, cancel := context.WithCancelCause(t.Context())
	lunch := errors.New("lunch")
	err = stream.CopyFrom(ctx, pods, "web-0", tree(t), filepath.Join(t.TempDir(), "x"), &stream.CopyOptions{
		OnProgress: func(stream.CopyProgress) { cancel(lunch) },
	})
	require.ErrorIs(t, err, lunch)
}

func TestCopyTo_FileOntoFolderAsKubectl(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "web")
	local := filepath.Join(t.TempDir(), "local.txt")
	write(t, local, "text")
	ours := t.TempDir()
	theirs := t.TempDir()
	for _, folder := range []string{ours, theirs} {
		require.NoError(t, os.MkdirAll(filepath.Join(folder, "existing"), 0o755))
	}
	for _, path := range []string{"existing", "new/name.txt", "existing/name.txt"} {
		_, response, code := kubectl(t, "", "cp", "-n", namespaceOf(t, pods), local, "web-0:"+filepath.Join(theirs, path))
		if path == "new/name.txt" {
			require.NotZero(t, code, "kubectl makes no folders: %s", response)
			write(t, filepath.Join(theirs, path), "text")
		} else {
			require.Zero(t, code, response)
		}
		require.NoError(t, stream.CopyTo(t.Context(), pods, "web-0", local, filepath.Join(ours, path), nil))
	}
	names := func(folder string) (names []string) {
		require.NoError(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			names = append(names, strings.TrimPrefix(path, folder))
			return err
		}))
		return names
	}
	assert.Equal(t, names(theirs), names(ours))
}
