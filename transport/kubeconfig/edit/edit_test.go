package edit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/transport/kubeconfig/edit"
)

func writeFile(t *testing.T, data string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
	return path
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// requireNoOtherFiles fails if an edit left a lock or a temporary file behind.
func requireNoOtherFiles(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	for _, entry := range entries {
		assert.Equal(t, filepath.Base(path), entry.Name())
	}
}

func setContext(name string) func(*edit.Document) error {
	return func(d *edit.Document) error {
		d.SetCurrentContext(name)
		return nil
	}
}

func TestFile_KeepsCommentsOrderAndUnknownFields(t *testing.T) {
	path := writeFile(t, `# mine
kind: Config
future: {a: [1, 2.50, 0777, yes, ~], "b": 'c'} # kept
current-context: a # chosen by hand
users:
# the first
- name: ann
  user:
    token: abc
    later: >-
      folded text
contexts: []
`)
	require.NoError(t, edit.File(t.Context(), path, setContext("yes")))
	assert.Equal(t, `# mine
kind: Config
future: {a: [1, 2.50, 0777, yes, ~], "b": 'c'} # kept
current-context: "yes" # chosen by hand
users:
# the first
- name: ann
  user:
    token: abc
    later: >-
      folded text
contexts: []
`, readFile(t, path))
	requireNoOtherFiles(t, path)
}

func TestFile_KeepsJSON(t *testing.T) {
	path := writeFile(t, `{
  "kind": "Config",
  "users": [],
  "future": {"a": 1}
}`)
	require.NoError(t, edit.File(t.Context(), path, func(d *edit.Document) error {
		return d.Put(&kubeconfig.File{CurrentContext: "a\"\u00e9\n\x01\u2028<", Users: map[string]kubeconfig.User{"ann": {Token: kubeconfig.NewSecret("t")}}})
	}))
	assert.JSONEq(t, `{"kind":"Config","users":[{"name":"ann","user":{"token":"t"}}],"future":{"a":1},"current-context":"a\"é\n\u0001\u2028<"}`,
		readFile(t, path))
	assert.Contains(t, readFile(t, path), "\n  \"users\": [\n")
}

func TestFile_CreatesPrivateFileAndFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kube", "config")
	require.NoError(t, edit.File(t.Context(), path, setContext("a")))
	assert.Equal(t, "apiVersion: v1\nkind: Config\ncurrent-context: a\n", readFile(t, path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	requireNoOtherFiles(t, path)
}

func TestFile_KeepsModeAndFollowsLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // neither modes nor links for everybody
	}
	path := writeFile(t, "kind: Config\n")
	require.NoError(t, os.Chmod(path, 0o640))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(path, link))
	second := filepath.Join(filepath.Dir(link), "second")
	require.NoError(t, os.Symlink("link", second))

	require.NoError(t, edit.File(t.Context(), second, setContext("a")))

	assert.Equal(t, "kind: Config\ncurrent-context: a\n", readFile(t, path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	for _, name := range []string{link, second} {
		info, err = os.Lstat(name)
		require.NoError(t, err)
		assert.Equal(t, os.ModeSymlink, info.Mode().Type())
	}
	requireNoOtherFiles(t, path)
}

func TestFile_CreatesTargetOfDanglingLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		return
	}
	dir := t.TempDir()
	require.NoError(t, os.Symlink("target", filepath.Join(dir, "link")))
	require.NoError(t, edit.File(t.Context(), filepath.Join(dir, "link"), setContext("a")))
	assert.Contains(t, readFile(t, filepath.Join(dir, "target")), "current-context: a")
	require.NoError(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	require.ErrorContains(t, edit.File(t.Context(), filepath.Join(dir, "loop"), setContext("a")), "symbolic links")
}

func TestFile_ErrorLeavesFileUnchanged(t *testing.T) {
	broken := errors.New("broken")
	const good = "users: [{name: a, user: {token: abc}}]\n"
	for name, tc := range map[string]struct {
		data   string
		change func(*edit.Document) error
		want   string
	}{
		"the change fails":  {good, func(d *edit.Document) error { d.SetCurrentContext("b"); return broken }, "broken"},
		"a broken file":     {"users: [", setContext("a"), ":1: not a kubeconfig"},
		"several documents": {good + "---\na: b\n", setContext("a"), ":2:1: not a kubeconfig: it has a second YAML document"},
		"a missing context": {good, func(d *edit.Document) error { return d.DeleteContext("x") }, `delete context "x": not found`},
		"a missing user":    {good, func(d *edit.Document) error { return d.SetAuthProviderConfig("x", nil) }, `user "x": no such user`},
		"no auth-provider":  {good, func(d *edit.Document) error { return d.SetAuthProviderConfig("a", nil) }, `user "a": no such user with an auth-provider`},
		"an unusable result": {good, func(d *edit.Document) error {
			return d.Put(&kubeconfig.File{Extensions: kubeconfig.Extensions{"a": []byte("{")}})
		}, "extension"},
		"nothing has changed": {good, func(*edit.Document) error { return nil }, ""},
		"the same as before":  {"current-context:   'a'\n", setContext("a"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, tc.data)
			before, err := os.Stat(path)
			require.NoError(t, err)
			err = edit.File(t.Context(), path, tc.change)
			if tc.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.want)
				require.ErrorContains(t, err, path)
			}
			assert.Equal(t, tc.data, readFile(t, path))
			after, err := os.Stat(path)
			require.NoError(t, err)
			assert.True(t, os.SameFile(before, after), "the file was replaced")
			requireNoOtherFiles(t, path)
		})
	}
}

func TestFile_WaitsForLockUntilContextEnds(t *testing.T) {
	path := writeFile(t, "kind: Config\n")
	lock := path + ".lock"
	require.NoError(t, os.WriteFile(lock, nil, 0))

	cause := errors.New("user left")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, cause)
	defer cancel()
	err := edit.File(ctx, path, setContext("a"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, cause)
	require.ErrorContains(t, err, "if none is running, delete "+lock)
	assert.Equal(t, "kind: Config\n", readFile(t, path))
	assert.FileExists(t, lock, "another's lock stays")

	done := make(chan error)
	go func() { done <- edit.File(t.Context(), path, setContext("a")) }()
	time.Sleep(30 * time.Millisecond)
	require.NoError(t, os.Remove(lock))
	require.NoError(t, <-done)
	assert.Equal(t, "kind: Config\ncurrent-context: a\n", readFile(t, path))
	requireNoOtherFiles(t, path)
}

func TestFile_ConcurrentEditsLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			assert.NoError(t, edit.File(t.Context(), path, func(d *edit.Document) error {
				return d.Put(&kubeconfig.File{Users: map[string]kubeconfig.User{fmt.Sprint(i): {Token: kubeconfig.NewSecret(fmt.Sprint(i))}}})
			}))
		})
	}
	group.Wait()
	file, err := kubeconfig.Read(path)
	require.NoError(t, err)
	assert.Len(t, file.Users, 20)
	requireNoOtherFiles(t, path)
}
