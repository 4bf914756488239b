package transport_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func writeKubeconfig(t *testing.T, name, data string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
	return path
}

const oneContext = `
current-context: one
clusters: [{name: one, cluster: {server: "https://one", certificate-authority: ca.crt}}]
users: [{name: ann, user: {token: s3cret}}, {name: bob, user: {exec: {command: login}}}, {name: old, user: {auth-provider: {name: gcp}}}]
contexts:
- {name: one, context: {cluster: one, user: ann, namespace: shop}}
- {name: exec, context: {cluster: one, user: bob}}
- {name: old, context: {cluster: one, user: old}}`

func TestLoadReadsTheFileItIsGiven(t *testing.T) {
	t.Setenv("KUBECONFIG", "/not/this/one")
	path := writeKubeconfig(t, "config", oneContext)

	cfg, err := transport.Load(&transport.LoadOptions{Path: path})

	require.NoError(t, err)
	assert.Equal(t, &transport.Config{
		Server: "https://one", Namespace: "shop", Token: "s3cret", CAFile: filepath.Join(filepath.Dir(path), "ca.crt"),
	}, cfg)
}

func TestLoadMergesTheKUBECONFIGListAndSkipsWhatIsMissing(t *testing.T) {
	first := writeKubeconfig(t, "first", `current-context: two
contexts: [{name: two, context: {cluster: one, user: ann}}]`)
	second := writeKubeconfig(t, "second", oneContext)
	list := string(os.PathListSeparator)
	t.Setenv("KUBECONFIG", "/missing"+list+list+first+list+second)

	cfg, err := transport.Load(nil)

	require.NoError(t, err)
	assert.Equal(t, "https://one", cfg.Server)
	assert.Equal(t, "default", cfg.Namespace, "the first file's context wins")

	cfg, err = transport.Load(&transport.LoadOptions{Context: "one"})
	require.NoError(t, err)
	assert.Equal(t, "shop", cfg.Namespace)
}

func TestLoadFallsBackToTheHomeDirectory(t *testing.T) {
	home := filepath.Dir(filepath.Dir(writeKubeconfig(t, ".kube/config", oneContext)))
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	cfg, err := transport.Load(nil)
	require.NoError(t, err)
	assert.Equal(t, "https://one", cfg.Server)
}

func TestLoadSaysWhyNothingCouldBeUsed(t *testing.T) {
	good, broken := writeKubeconfig(t, "good", oneContext), writeKubeconfig(t, "broken", "kind: Pod")
	empty := writeKubeconfig(t, "empty", "")
	t.Setenv("HOME", "/no-home")
	t.Setenv("USERPROFILE", "/no-home")
	for name, tc := range map[string]struct {
		env  string
		opts *transport.LoadOptions
		says []string
	}{
		"a given file that is missing": {"", &transport.LoadOptions{Path: "/missing/config"}, []string{"/missing/config"}},
		"no file anywhere":             {"", nil, []string{"KUBECONFIG is not set", filepath.Join("/no-home", ".kube", "config")}},
		"a list of missing files":      {"/missing/a", nil, []string{"KUBECONFIG=/missing/a", "does not exist"}},
		"a broken file in the list":    {good + string(os.PathListSeparator) + broken, nil, []string{broken, `"Pod"`}},
		"an unknown context":           {good, &transport.LoadOptions{Context: "typo"}, []string{good, `"typo"`, "exec, old, one"}},
		"no current context":           {empty, nil, []string{empty, "no context chosen"}},
		"an exec plugin":               {good, &transport.LoadOptions{Context: "exec"}, []string{"exec plugin", "use a token"}},
		"an auth provider":             {good, &transport.LoadOptions{Context: "old"}, []string{"auth-provider"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tc.env)
			_, err := transport.Load(tc.opts)
			require.Error(t, err)
			for _, says := range tc.says {
				assert.ErrorContains(t, err, says)
			}
			assert.NotContains(t, err.Error(), "s3cret")
		})
	}
}
