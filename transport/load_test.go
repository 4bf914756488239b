package transport

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport/kubeconfig"
)

const oneContext = `
current-context: one
clusters:
- {name: one, cluster: {server: "https://one"}}
- {name: two, cluster: {server: "https://two"}}
users: [{name: ann, user: {token: s3cret}}, {name: bob, user: {token: other}}]
contexts:
- {name: one, context: {cluster: one, user: ann, namespace: shop}}`

// nowhere is a machine on which there is no cluster; its environment is to be filled in.
func nowhere(t *testing.T) (at *locator, env map[string]string) {
	t.Helper()
	env = map[string]string{}
	home := t.TempDir()
	return &locator{
		env:               func(name string) string { return env[name] },
		home:              func() (string, error) { return home, nil },
		serviceAccountDir: filepath.Join(home, "serviceaccount"),
		kubectlProxyURL:   "http://127.0.0.1:1",
	}, env
}

func write(t *testing.T, path, data string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
	return path
}

// inHome writes ~/.kube/config.
func (l *locator) inHome(t *testing.T, data string) {
	t.Helper()
	home, err := l.home()
	require.NoError(t, err)
	write(t, filepath.Join(home, ".kube", "config"), data)
}

// inPod makes the machine a pod.
func (l *locator) inPod(t *testing.T, env map[string]string) {
	t.Helper()
	env["KUBERNETES_SERVICE_HOST"] = "fd00::1"
	env["KUBERNETES_SERVICE_PORT"] = "443"
	write(t, filepath.Join(l.serviceAccountDir, "token"), "s3cret")
	write(t, filepath.Join(l.serviceAccountDir, "ca.crt"), "authority")
	write(t, filepath.Join(l.serviceAccountDir, "namespace"), "robots\n")
}

// behindProxy makes something listen where kubectl proxy does.
func (l *locator) behindProxy(t *testing.T, version string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, version) }))
	t.Cleanup(server.Close)
	l.kubectlProxyURL = server.URL
}

func TestLoad_FirstPlaceWins(t *testing.T) {
	at, env := nowhere(t)
	find := func(opts *LoadOptions) string {
		cfg, err := at.load(t.Context(), opts)
		require.NoError(t, err)
		return cfg.Server
	}
	at.behindProxy(t, `{"gitVersion":"v1.36.3"}`)
	assert.Equal(t, at.kubectlProxyURL, find(&LoadOptions{}))
	at.inPod(t, env)
	assert.Equal(t, "https://[fd00::1]:443", find(&LoadOptions{}))
	at.inHome(t, "")
	assert.Equal(t, "https://[fd00::1]:443", find(&LoadOptions{}), "an empty kubeconfig is as good as none")
	for _, opts := range []*LoadOptions{{Context: "one"}, {Cluster: "one"}, {User: "ann"}, {Kubeconfig: &kubeconfig.File{}}} {
		_, err := at.load(t.Context(), opts)
		require.Error(t, err, "%+v requires a kubeconfig", opts)
	}
	at.inHome(t, oneContext)
	assert.Equal(t, "https://one", find(&LoadOptions{}))
	env["KUBECONFIG"] = write(t, filepath.Join(t.TempDir(), "listed"), `current-context: three
clusters: [{name: three, cluster: {server: "https://three"}}]
contexts: [{name: three, context: {cluster: three}}]`)
	assert.Equal(t, "https://three", find(&LoadOptions{}))
	explicit := write(t, filepath.Join(t.TempDir(), "explicit"), oneContext)
	assert.Equal(t, "https://one", find(&LoadOptions{Path: explicit}))
	env["KUBECONFIG"] = os.DevNull
	assert.Equal(t, "https://[fd00::1]:443", find(&LoadOptions{}), "with KUBECONFIG set, the home directory does not count")
}

func TestLoad_ReadsAllSettings(t *testing.T) {
	at, env := nowhere(t)
	at.inPod(t, env)
	cfg, err := at.load(t.Context(), &LoadOptions{})
	require.NoError(t, err)
	assert.Equal(t, &Config{
		Server: "https://[fd00::1]:443", Options: Options{Namespace: "robots"},
		TokenFile: filepath.Join(at.serviceAccountDir, "token"), CAFile: filepath.Join(at.serviceAccountDir, "ca.crt"),
	}, cfg)

	path := write(t, filepath.Join(t.TempDir(), "config"), strings.Replace(oneContext, `one"`, `one", certificate-authority: ca.crt`, 1))
	authority := write(t, filepath.Join(filepath.Dir(path), "ca.crt"), "authority")
	cfg, err = at.load(t.Context(), &LoadOptions{Path: path})
	require.NoError(t, err)
	assert.Equal(t, &Config{Server: "https://one", Options: Options{Namespace: "shop"}, Token: kubeconfig.NewSecret("s3cret"), CAFile: authority}, cfg)
}

func TestLoad_OptionsOverride(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "config"), oneContext)
	cfg, err := Load(t.Context(), &LoadOptions{Path: path, Cluster: "two", User: "bob", Namespace: "home"})
	require.NoError(t, err)
	assert.Equal(t, []string{"https://two", "other", "home"}, []string{cfg.Server, cfg.Token.Reveal(), cfg.Namespace})
}

func TestLoad_MergesListedKubeconfigs(t *testing.T) {
	at, env := nowhere(t)
	first := write(t, filepath.Join(t.TempDir(), "first"), `current-context: two
contexts: [{name: two, context: {cluster: one, user: ann}}]`)
	second := write(t, filepath.Join(t.TempDir(), "second"), oneContext)
	list := string(os.PathListSeparator)
	env["KUBECONFIG"] = "/missing" + list + list + first + list + second

	cfg, err := at.load(t.Context(), &LoadOptions{})
	require.NoError(t, err)
	assert.Equal(t, "https://one", cfg.Server)
	assert.Equal(t, "default", cfg.Namespace, "the first file's context wins")
	cfg, err = at.load(t.Context(), &LoadOptions{Context: "one"})
	require.NoError(t, err)
	assert.Equal(t, "shop", cfg.Namespace)
}

func TestLoad_ErrorHasReasonForEachPlace(t *testing.T) {
	at, env := nowhere(t)
	_, err := at.load(t.Context(), &LoadOptions{})
	home, _ := at.home()
	for _, want := range []string{
		"KUBECONFIG is not set, and there is no " + filepath.Join(home, ".kube", "config"),
		"not in a pod: KUBERNETES_SERVICE_HOST",
		"no kubectl proxy at http://127.0.0.1:1: ",
		"connection refused",
	} {
		require.ErrorContains(t, err, want)
	}

	env["KUBECONFIG"] = os.DevNull
	env["KUBERNETES_SERVICE_HOST"] = "10.0.0.1"
	env["KUBERNETES_SERVICE_PORT"] = "443"
	at.behindProxy(t, "<html>a web server")
	_, err = at.load(t.Context(), &LoadOptions{})
	for _, want := range []string{
		"KUBECONFIG=" + os.DevNull + ": it has no context and no cluster",
		"is automountServiceAccountToken false?",
		"not a Kubernetes API server's",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestLoad_UnusablePlaceEndsSearch(t *testing.T) {
	good := write(t, filepath.Join(t.TempDir(), "good"), oneContext)
	broken := write(t, filepath.Join(t.TempDir(), "broken"), "kind: Pod")
	list := string(os.PathListSeparator)
	contextless := write(t, filepath.Join(t.TempDir(), "contextless"), `clusters: [{name: one, cluster: {server: "https://one"}}]`)
	for name, tc := range map[string]struct {
		env  string
		opts LoadOptions
		want []string
	}{
		"a given file that is missing": {"", LoadOptions{Path: "/missing/config"}, []string{"/missing/config"}},
		"a given file that is empty":   {"", LoadOptions{Path: write(t, filepath.Join(t.TempDir(), "empty"), "")}, []string{"no context chosen"}},
		"a broken file in the list":    {good + string(os.PathListSeparator) + broken, LoadOptions{}, []string{broken, `"Pod"`}},
		"an unknown context":           {good, LoadOptions{Context: "typo"}, []string{good, `"typo"`, "one"}},
		"no current context":           {contextless, LoadOptions{}, []string{contextless, "no context chosen"}},
		"a context of no kubeconfig":   {"/missing/a", LoadOptions{Context: "one"}, []string{"/missing/a"}},
		"a mistyped KUBECONFIG":        {"/missing/a", LoadOptions{}, []string{"KUBECONFIG=/missing/a: none of its files exists"}},
		"a mistyped list":              {"/missing/a" + list + list + "/missing/b", LoadOptions{}, []string{"/missing/b: none of its files exists"}},
		"a list of nothing":            {list, LoadOptions{}, []string{"none of its files exists"}},
	} {
		t.Run(name, func(t *testing.T) {
			at, env := nowhere(t)
			at.inPod(t, env)
			env["KUBECONFIG"] = tc.env
			_, err := at.load(t.Context(), &tc.opts)
			require.Error(t, err)
			for _, want := range tc.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "s3cret")
			assert.NotContains(t, err.Error(), "not in a pod")
		})
	}
}

func TestLoad_ReadsExecPlugin(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "config"), `
current-context: one
clusters:
- name: one
  cluster:
    server: https://one
    extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: shop}}]
users:
- name: ann
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/login
      args: [--for, shop]
      env: [{name: MODE, value: quiet}]
      installHint: ask Bob
      interactiveMode: Never
      provideClusterInfo: true
contexts: [{name: one, context: {cluster: one, user: ann}}]`)
	cfg, err := Load(t.Context(), &LoadOptions{Path: path})
	require.NoError(t, err)
	assert.Equal(t, &ExecPlugin{ClusterConfig: []byte(`{"audience":"shop"}`), Exec: kubeconfig.Exec{
		APIVersion: "client.authentication.k8s.io/v1", Command: filepath.Join(filepath.Dir(path), "bin", "login"),
		Args: []string{"--for", "shop"}, Env: []kubeconfig.EnvVar{{Name: "MODE", Value: kubeconfig.NewSecret("quiet")}}, InstallHint: "ask Bob",
		InteractiveMode: "Never", ProvideClusterInfo: true,
	}}, cfg.Exec)
}

func TestLoad_SavesOIDCTokensInTheirFile(t *testing.T) {
	const users = `
users:
- name: ann
  user:
    auth-provider:
      name: oidc
      config:
        client-id: anykind
        idp-issuer-url: https://issuer # ours
        id-token: old
        refresh-token: older
- {name: old, user: {auth-provider: {name: gcp}}}`
	second := write(t, filepath.Join(t.TempDir(), "users"), users)
	first := write(t, filepath.Join(t.TempDir(), "config"), `
current-context: one
clusters: [{name: one, cluster: {server: "https://one"}}]
contexts: [{name: one, context: {cluster: one, user: ann}}]`)
	at, env := nowhere(t)
	env["KUBECONFIG"] = first + string(os.PathListSeparator) + second
	cfg, err := at.load(t.Context(), &LoadOptions{})
	require.NoError(t, err)
	require.NotNil(t, cfg.OIDC)
	assert.Equal(t, []string{"https://issuer", "anykind", "old", "older"},
		[]string{cfg.OIDC.Issuer, cfg.OIDC.ClientID, cfg.OIDC.IDToken.Reveal(), cfg.OIDC.RefreshToken.Reveal()})

	require.NoError(t, cfg.OIDC.SaveTokens(t.Context(), "new", "newer"))
	saved, err := os.ReadFile(second)
	require.NoError(t, err)
	assert.Equal(t, strings.NewReplacer("id-token: old", "id-token: new", "older", "newer").Replace(strings.TrimPrefix(users, "\n")),
		strings.TrimSuffix(string(saved), "\n"))
	idToken, refreshToken, err := cfg.OIDC.LoadTokens(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"new", "newer"}, []string{idToken, refreshToken})

	_, err = at.load(t.Context(), &LoadOptions{User: "old"})
	require.ErrorContains(t, err, `kubectl no longer supports "gcp"`)
	write(t, second, "users: [{name: ann, user: {token: s3cret}}]")
	_, _, err = cfg.OIDC.LoadTokens(t.Context())
	require.EqualError(t, err, `user "ann" of `+second+" has no auth-provider any more")
}

func TestLoad_ParsedKubeconfig(t *testing.T) {
	file, err := kubeconfig.Parse([]byte(oneContext+`
- {name: two, context: {cluster: two, user: bob}}`), "")
	require.NoError(t, err)
	at, env := nowhere(t)
	at.inPod(t, env)
	env["KUBECONFIG"] = "/missing/a"
	for name, test := range map[string]struct {
		opts LoadOptions
		want []string // server, token, namespace
	}{
		"current context":  {LoadOptions{}, []string{"https://one", "s3cret", "shop"}},
		"chosen context":   {LoadOptions{Context: "two"}, []string{"https://two", "other", "default"}},
		"chosen user":      {LoadOptions{User: "bob"}, []string{"https://one", "other", "shop"}},
		"in cluster first": {LoadOptions{InClusterFirst: true}, []string{"https://one", "s3cret", "shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.opts.Kubeconfig = file
			cfg, err := at.load(t.Context(), &test.opts)
			require.NoError(t, err)
			assert.Equal(t, test.want, []string{cfg.Server, cfg.Token.Reveal(), cfg.Namespace})
		})
	}
	for name, test := range map[string]struct {
		opts LoadOptions
		want string
	}{
		"empty":           {LoadOptions{Kubeconfig: &kubeconfig.File{}}, "LoadOptions.Kubeconfig: no context chosen"},
		"unknown context": {LoadOptions{Kubeconfig: file, Context: "typo"}, `LoadOptions.Kubeconfig: context "typo" does not exist (contexts: `},
		"and a path":      {LoadOptions{Kubeconfig: file, Path: "config"}, "LoadOptions: Path and Kubeconfig exclude each other (drop one)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := at.load(t.Context(), &test.opts)
			require.ErrorContains(t, err, test.want)
			assert.NotContains(t, err.Error(), "not in a pod", "the search ends")
		})
	}
}

func TestLoad_ParsedOIDCTokensStayInMemory(t *testing.T) {
	file, err := kubeconfig.Parse([]byte(`
current-context: one
clusters: [{name: one, cluster: {server: "https://one"}}]
users: [{name: ann, user: {auth-provider: {name: oidc, config: {client-id: anykind, idp-issuer-url: "https://issuer"}}}}]
contexts: [{name: one, context: {cluster: one, user: ann}}]`), "")
	require.NoError(t, err)
	cfg, err := Load(t.Context(), &LoadOptions{Kubeconfig: file})
	require.NoError(t, err)
	assert.Equal(t, &OIDC{Issuer: "https://issuer", ClientID: "anykind", CAData: []byte{}}, cfg.OIDC)
}

func TestLoad_RejectsInvalidOIDC(t *testing.T) {
	file, err := kubeconfig.Parse([]byte(`
current-context: one
clusters: [{name: one, cluster: {server: "https://one"}}]
users: [{name: ann, user: {auth-provider: {name: oidc, config: {client-id: anykind, idp-issuer-url: "https://issuer", idp-certificate-authority-data: "-"}}}}]
contexts: [{name: one, context: {cluster: one, user: ann}}]`), "")
	require.NoError(t, err)
	_, err = Load(t.Context(), &LoadOptions{Kubeconfig: file})
	require.ErrorContains(t, err, `LoadOptions.Kubeconfig: user "ann": auth-provider: idp-certificate-authority-data is not base64`)
}

func TestLoad_InClusterFirst(t *testing.T) {
	at, env := nowhere(t)
	at.inHome(t, oneContext)
	first := &LoadOptions{InClusterFirst: true}
	server := func(opts *LoadOptions) string {
		cfg, err := at.load(t.Context(), opts)
		require.NoError(t, err)
		return cfg.Server
	}
	assert.Equal(t, "https://one", server(first), "outside a pod the kubeconfig is next")
	env["KUBERNETES_SERVICE_HOST"] = "fd00::1"
	env["KUBERNETES_SERVICE_PORT"] = "443"
	assert.Equal(t, "https://one", server(first), "a pod without a service account")
	at.inPod(t, env)
	assert.Equal(t, "https://[fd00::1]:443", server(first))
	assert.Equal(t, "https://one", server(&LoadOptions{}))
	env["KUBECONFIG"] = "/missing/a"
	assert.Equal(t, "https://[fd00::1]:443", server(first), "KUBECONFIG does not count")
	delete(env, "KUBECONFIG")
	for _, opts := range []LoadOptions{{Context: "one"}, {User: "ann"}, {Cluster: "one"}, {Path: write(t, filepath.Join(t.TempDir(), "given"), oneContext)}} {
		opts.InClusterFirst = true
		assert.Equal(t, "https://one", server(&opts), "a kubeconfig is required")
	}
	require.NoError(t, os.Remove(filepath.Join(at.serviceAccountDir, "namespace")))
	require.NoError(t, os.Mkdir(filepath.Join(at.serviceAccountDir, "namespace"), 0o700))
	_, err := at.load(t.Context(), first)
	require.ErrorContains(t, err, "in a pod: ", "a place that cannot be used ends the search")
}

func TestLoadKubeconfig_ContextsOfEveryFile(t *testing.T) {
	first := write(t, filepath.Join(t.TempDir(), "first"), oneContext)
	second := write(t, filepath.Join(t.TempDir(), "second"), `
clusters: [{name: three, cluster: {server: "https://three"}}]
contexts: [{name: three, context: {cluster: three, namespace: home}}]`)
	t.Setenv("KUBECONFIG", first+string(os.PathListSeparator)+second)
	file, err := LoadKubeconfig("")
	require.NoError(t, err)
	servers := map[string]string{}
	for name := range file.Contexts {
		cfg, err := Load(t.Context(), &LoadOptions{Kubeconfig: file, Context: name})
		require.NoError(t, err)
		servers[name] = cfg.Server
	}
	assert.Equal(t, map[string]string{"one": "https://one", "three": "https://three"}, servers)

	file, err = LoadKubeconfig(second)
	require.NoError(t, err)
	assert.Len(t, file.Contexts, 1)
	_, err = LoadKubeconfig("/missing/config")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "read a kubeconfig: ")
}
