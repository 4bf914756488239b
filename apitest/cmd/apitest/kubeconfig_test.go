package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/transport/kubeconfig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serveOnce starts a server with a kubeconfig at path and ends it.
func serveOnce(t *testing.T, path string) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return run(ctx, []string{"-kubeconfig", path}, io.Discard, io.Discard)
}

const (
	ownEntries  = "clusters: [{name: apitest, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: apitest, user: {token: apitest-admin}}]\n"
	ownContexts = "contexts: [{name: apitest, context: {cluster: apitest, user: apitest, namespace: shop}}]\ncurrent-context: apitest\n"
	userEntries = "clusters: [{name: shop, cluster: {server: 'https://shop.example'}}]\nusers: [{name: shop, user: {token: secret}}]\n"
)

func TestKubeconfig_ReplacesOwnFilesOnly(t *testing.T) {
	server := apitest.NewServer(t, nil)
	earlier, err := server.KubeconfigData()
	require.NoError(t, err)
	for _, c := range []struct {
		name, content string
		mode          os.FileMode
		isReplaced    bool
	}{
		{"of an earlier apitest", string(earlier), 0o600, true},
		{"of an earlier apitest that others may read", string(earlier), 0o644, true},
		{"with another namespace", ownEntries + ownContexts, 0o640, true},
		{"empty", "", 0o644, true},
		{"of the user", userEntries + "contexts: [{name: shop, context: {cluster: shop, user: shop}}]\n", 0o644, false},
		{"of the user, with a context of apitest", userEntries + ownContexts, 0o600, false},
		{"of apitest, with a context of the user", ownEntries + "contexts: [{name: apitest, context: {}}, {name: shop, context: {}}]\n", 0o600, false},
		{"of a cluster of the same name", strings.Replace(ownEntries, "token: apitest-admin", "username: me", 1) + ownContexts, 0o644, false},
		{"without contexts", ownEntries, 0o600, false},
		{"no kubeconfig", "notes\n", 0o644, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			require.NoError(t, os.WriteFile(path, []byte(c.content), c.mode))
			link := filepath.Join(t.TempDir(), "link")
			require.NoError(t, os.Symlink(path, link))
			for _, name := range []string{path, link} {
				err := serveOnce(t, name)
				data, readErr := os.ReadFile(path)
				require.NoError(t, readErr)
				info, statErr := os.Stat(path)
				require.NoError(t, statErr)
				if !c.isReplaced {
					require.ErrorContains(t, err, name+": the file exists and is not from apitest")
					assert.Equal(t, c.content, string(data))
					assert.Equal(t, c.mode, info.Mode().Perm())
					continue
				}
				require.NoError(t, err)
				file, err := kubeconfig.Parse(data, "")
				require.NoError(t, err)
				assert.Equal(t, "apitest", file.CurrentContext)
				assert.NotEqual(t, c.content, string(data))
				if runtime.GOOS != "windows" {
					assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
				}
			}
			entries, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			assert.Len(t, entries, 1, "no temporary file is left")
		})
	}
}

func TestKubeconfig_NewFileAndOtherPaths(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "new")
	require.NoError(t, serveOnce(t, path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	require.ErrorContains(t, serveOnce(t, folder), "not a regular file")
	require.ErrorIs(t, serveOnce(t, filepath.Join(folder, "none", "x")), os.ErrNotExist)
	dangling := filepath.Join(folder, "dangling")
	require.NoError(t, os.Symlink(filepath.Join(folder, "absent"), dangling))
	require.ErrorIs(t, serveOnce(t, dangling), os.ErrNotExist)
}
