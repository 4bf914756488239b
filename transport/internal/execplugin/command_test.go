package execplugin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/credentials"
	"github.com/anykind/anykind/transport/internal/credential"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// result is that of one run.
type result struct {
	credential *credential.Credential
	err        error
}

// request requests a credential in the background.
func (a *Authenticator) request(ctx context.Context) <-chan result {
	results := make(chan result, 1)
	go func() {
		got, err := a.Credential(ctx)
		results <- result{got, err}
	}()
	return results
}

func newConfig(plugin kubeconfig.Exec, allowlist []string) *Config {
	return &Config{Exec: plugin, Allowlist: allowlist, CA: credential.NewFile(nil, "")}
}

// configOf returns the configuration that runs a plugin.
func configOf(fake *credentials.Plugin) *Config {
	cfg := newConfig(kubeconfig.Exec{APIVersion: kubeconfig.ExecV1, Command: fake.Command}, nil)
	for name, value := range fake.Env {
		cfg.Env = append(cfg.Env, kubeconfig.EnvVar{Name: name, Value: kubeconfig.NewSecret(value)})
	}
	return cfg
}

// newAuthenticator is New without this process's terminal.
func newAuthenticator(t *testing.T, cfg *Config) *Authenticator {
	t.Helper()
	a, err := New(*cfg)
	require.NoError(t, err)
	a.stdinIsTerminal = func() bool { return false }
	a.hasTerminal = func() bool { return false }
	a.stderr = io.Discard
	return a
}

func TestAuthenticator_PassesExecInfoArgsEnv(t *testing.T) {
	caFile := filepath.Join(t.TempDir(), "ca")
	require.NoError(t, os.WriteFile(caFile, []byte("PEM"), 0o600))
	const v1, v1beta1 = `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{`,
		`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{`
	none := credential.NewFile(nil, "")
	for name, tc := range map[string]struct {
		server     Cluster
		authority  *credential.File
		apiVersion string
		provide    bool
		config     string
		want       string
	}{
		"nothing": {Cluster{Server: "https://c"}, none, kubeconfig.ExecV1, false, `{"a":1}`, v1 + `"interactive":false}}`},
		"v1beta1": {Cluster{Server: "https://c"}, none, kubeconfig.ExecV1Beta1, false, "", v1beta1 + `"interactive":false}}`},
		"a cluster": {Cluster{Server: "https://c"}, none, kubeconfig.ExecV1, true, "",
			v1 + `"cluster":{"server":"https://c","config":null},"interactive":false}}`},
		"all of a cluster": {
			Cluster{Server: "https://c:6443/p", ServerName: "n", ProxyURL: "http://p:1", DisableCompression: true},
			credential.NewFile([]byte("PEM"), ""), kubeconfig.ExecV1, true, `{"audience":"x"}`,
			v1 + `"cluster":{"server":"https://c:6443/p","tls-server-name":"n","certificate-authority-data":"UEVN",` +
				`"proxy-url":"http://p:1","disable-compression":true,"config":{"audience":"x"}},"interactive":false}}`,
		},
		"authorities of a file": {Cluster{Server: "https://c"}, credential.NewFile(nil, caFile), kubeconfig.ExecV1, true, "",
			v1 + `"cluster":{"server":"https://c","certificate-authority-data":"UEVN","config":null},"interactive":false}}`},
		"any server": {Cluster{Server: "https://c", Insecure: true}, none, kubeconfig.ExecV1Beta1, true, "",
			v1beta1 + `"cluster":{"server":"https://c","insecure-skip-tls-verify":true,"config":null},"interactive":false}}`},
	} {
		t.Run(name, func(t *testing.T) {
			fake := credentials.NewPlugin(t)
			cfg := configOf(fake)
			cfg.CA = tc.authority
			cfg.Cluster = tc.server
			cfg.APIVersion = tc.apiVersion
			cfg.ProvideClusterInfo = tc.provide
			if tc.config != "" {
				cfg.Cluster.Config = json.RawMessage(tc.config)
			}
			cfg.Args = []string{"get-token", "a b"}
			for name, value := range map[string]string{"PLUGIN_ONLY": "1", "INHERITED": "own", "KUBERNETES_EXEC_INFO": "x"} {
				cfg.Env = append(cfg.Env, kubeconfig.EnvVar{Name: name, Value: kubeconfig.NewSecret(value)})
			}
			t.Setenv("INHERITED", "parent's")
			t.Setenv("PARENTS", "1")
			result := newAuthenticator(t, cfg).request(t.Context())
			run := fake.Next(t)
			run.Do(t, credentials.PluginAction{Stdout: `{"kind":"ExecCredential","apiVersion":"` + tc.apiVersion + `","status":{"token":"t"}}`})
			require.NoError(t, (<-result).err)

			assert.Equal(t, tc.want, run.Info)
			assert.Equal(t, []string{cfg.Command, "get-token", "a b"}, run.Args)
			assert.Subset(t, run.Env, []string{"PLUGIN_ONLY=1", "INHERITED=own", "PARENTS=1"})
			assert.NotContains(t, run.Env, "INHERITED=parent's")
			assert.Empty(t, run.Stdin)
		})
	}
}

func TestAuthenticator_PassesStdinByInteractiveMode(t *testing.T) {
	typed := filepath.Join(t.TempDir(), "stdin")
	require.NoError(t, os.WriteFile(typed, []byte("password"), 0o600))
	for name, tc := range map[string]struct {
		mode     string
		terminal bool
		stdin    string
	}{
		"never":               {kubeconfig.InteractiveNever, true, ""},
		"if available":        {kubeconfig.InteractiveIfAvailable, true, "password"},
		"by default":          {"", true, "password"},
		"always":              {kubeconfig.InteractiveAlways, true, "password"},
		"if it was available": {kubeconfig.InteractiveIfAvailable, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			stdin, err := os.Open(typed)
			require.NoError(t, err)
			defer func(before *os.File) { os.Stdin = before; _ = stdin.Close() }(os.Stdin)
			os.Stdin = stdin
			fake := credentials.NewPlugin(t)
			plugin := configOf(fake)
			plugin.InteractiveMode = tc.mode
			a := newAuthenticator(t, plugin)
			a.stdinIsTerminal = func() bool { return tc.terminal }
			a.hasTerminal = func() bool { return tc.terminal }
			result := a.request(t.Context())
			run := fake.Next(t)
			run.Do(t, credentials.PluginAction{Stdout: credentials.TokenOutput("t")})
			require.NoError(t, (<-result).err)
			assert.Equal(t, tc.stdin, run.Stdin)
			assert.Equal(t, tc.stdin != "", bytes.Contains([]byte(run.Info), []byte(`"interactive":true`)), run.Info)
		})
	}
}

func TestAuthenticator_InteractiveAlwaysNeedsTerminal(t *testing.T) {
	fake := credentials.NewPlugin(t)
	plugin := configOf(fake)
	plugin.InteractiveMode = kubeconfig.InteractiveAlways
	_, err := newAuthenticator(t, plugin).Credential(t.Context())
	require.ErrorContains(t, err, "needs a terminal")
	assert.Zero(t, fake.Runs())
}

func TestAuthenticator_ErrorsHaveHintsNotOutput(t *testing.T) {
	for name, tc := range map[string]struct {
		action credentials.PluginAction
		want   string
	}{
		"exits 1":        {credentials.PluginAction{Stdout: credentials.Planted, Stderr: credentials.Planted, Exit: 1}, "exit status 1"},
		"fails nicely":   {credentials.PluginAction{Stdout: credentials.TokenOutput(credentials.Planted), Stderr: credentials.Planted, Exit: 3}, "run it by hand"},
		"prints garbage": {credentials.PluginAction{Stdout: "Hi " + credentials.Planted, Stderr: credentials.Planted}, "no ExecCredential in JSON"},
		"prints nothing": {credentials.PluginAction{Stderr: credentials.Planted}, "printed nothing"},
		"prints on and on, and would never end": {credentials.PluginAction{Stdout: credentials.Planted, Blank: 1 << 20, Stay: true},
			"more than 1 MiB"},
		"an expired token": {credentials.PluginAction{Stdout: credentials.TokenOutput(credentials.Planted, time.Now().Add(-time.Hour))}, "check this machine's clock"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := credentials.NewPlugin(t)
			plugin := configOf(fake)
			plugin.Args = []string{credentials.Planted}
			a := newAuthenticator(t, plugin)
			var stderr bytes.Buffer
			a.stderr = &stderr
			result := a.request(t.Context())
			run := fake.Next(t)
			run.Do(t, tc.action)
			got := <-result
			require.ErrorContains(t, got.err, tc.want)
			assert.Nil(t, got.credential)
			assert.ErrorContains(t, got.err, "exec plugin")
			assert.NotContains(t, got.err.Error(), credentials.Planted)
			assert.Equal(t, tc.action.Stderr, stderr.String(), "people see what it tells them")
			run.AwaitExit(t)
		})
	}
}

func TestAuthenticator_OutputLimit(t *testing.T) {
	for size, ok := range map[int]bool{maxOutput: true, maxOutput + 1: false} {
		fake := credentials.NewPlugin(t)
		a := newAuthenticator(t, configOf(fake))
		result := a.request(t.Context())
		output := credentials.TokenOutput("t")
		padding := bytes.Repeat([]byte(" "), size-len(output))
		fake.Next(t).Do(t, credentials.PluginAction{Stdout: output + string(padding)})
		assert.Equal(t, ok, (<-result).err == nil, "%d", size)
	}
}

func TestAuthenticator_InstallHint(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	notExecutable := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(notExecutable, []byte("x"), 0o600))
	noInterpreter := filepath.Join(dir, "script")
	require.NoError(t, os.WriteFile(noInterpreter, []byte("#!/missing/interpreter\n"), 0o700))
	for name, tc := range map[string]struct {
		plugin kubeconfig.Exec
		want   []string
	}{
		"a name":                  {kubeconfig.Exec{Command: "aws", InstallHint: "See https://aws.example\n"}, []string{"not found", "See https://aws.example"}},
		"a path":                  {kubeconfig.Exec{Command: filepath.Join(dir, "aws"), InstallHint: "hint"}, []string{"not found", "hint"}},
		"no hint":                 {kubeconfig.Exec{Command: "aws"}, []string{"put it in PATH"}},
		"not executable":          {kubeconfig.Exec{Command: notExecutable, InstallHint: "hint"}, []string{"start the program", "permission denied"}},
		"without its interpreter": {kubeconfig.Exec{Command: "script", InstallHint: "hint"}, []string{"not found", "hint"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.plugin.APIVersion = kubeconfig.ExecV1
			tc.plugin.Args = []string{credentials.Planted}
			_, err := newAuthenticator(t, newConfig(tc.plugin, nil)).Credential(t.Context())
			for _, want := range append(tc.want, `exec plugin "`+tc.plugin.Command) {
				require.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), credentials.Planted)
		})
	}
}

func TestAuthenticator_UnreadableCertificateAuthority(t *testing.T) {
	fake := credentials.NewPlugin(t)
	plugin := configOf(fake)
	plugin.ProvideClusterInfo = true
	plugin.CA = credential.NewFile(nil, "/missing/ca")
	_, err := newAuthenticator(t, plugin).Credential(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Zero(t, fake.Runs())
}

func TestAuthenticator_CancelKillsPlugin(t *testing.T) {
	fake := credentials.NewPlugin(t)
	a := newAuthenticator(t, configOf(fake))
	ctx, cancel := context.WithCancel(t.Context())
	result := a.request(ctx)
	run := fake.Next(t)
	cancel()
	got := <-result
	require.ErrorIs(t, got.err, context.Canceled)
	require.ErrorContains(t, got.err, "exec plugin")
	run.AwaitExit(t)
}

func TestAuthenticator_LeftoverProcessIsIgnored(t *testing.T) {
	fake := credentials.NewPlugin(t)
	a := newAuthenticator(t, configOf(fake))
	a.waitDelay = time.Millisecond
	result := a.request(t.Context())
	run := fake.Next(t)
	run.Do(t, credentials.PluginAction{Stdout: credentials.TokenOutput("t"), Child: true, Stay: true})
	child := fake.Next(t)
	run.Do(t, credentials.PluginAction{})
	require.NoError(t, (<-result).err)
	child.Do(t, credentials.PluginAction{Stay: true}) // it goes on
	require.NoError(t, child.Conn.Close())
}

func TestLimitedBuffer_WriteBeyondLimit(t *testing.T) {
	stopped := 0
	b := &limitedBuffer{limit: 3, onOverflow: func() { stopped++ }}
	_, err := io.WriteString(b, "abc")
	require.NoError(t, err)
	_, err = io.WriteString(b, "d")
	require.Error(t, err)
	assert.Equal(t, 1, stopped)
	assert.True(t, b.overflowed)
}

func program(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/false\n"), 0o700))
	return path
}

func TestConfig_LookPathObeysAllowlist(t *testing.T) {
	bin := t.TempDir()
	elsewhere := t.TempDir()
	t.Setenv("PATH", bin)
	t.Chdir(elsewhere)
	good := program(t, bin, "aws")
	evil := program(t, elsewhere, "aws")
	other := program(t, bin, "other")

	for name, tc := range map[string]struct {
		command string
		allowed []string
		path    string // "" if it is not allowed
	}{
		"any":                        {"aws", nil, good},
		"none":                       {"aws", []string{}, ""},
		"an empty entry":             {"aws", []string{""}, ""},
		"by name":                    {"aws", []string{"other", "aws"}, good},
		"a name's path":              {"aws", []string{good}, good},
		"a path's name":              {good, []string{"aws"}, good},
		"by path":                    {evil, []string{evil}, evil},
		"another path of the name":   {evil, []string{"aws"}, ""},
		"another path":               {evil, []string{good}, ""},
		"another name":               {"other", []string{"aws"}, ""},
		"a relative path is no name": {"./aws", []string{"aws"}, ""},
		"a crooked path":             {filepath.Join(bin, "x") + "/../other", []string{other}, ""},
		"a path that is untidy":      {bin + "/./other", []string{other}, bin + "/./other"},
		"not there, not allowed":     {"missing", []string{"aws"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := newConfig(kubeconfig.Exec{Command: tc.command}, tc.allowed).lookPath()
			assert.Equal(t, tc.path, path)
			if tc.path == "" {
				require.ErrorIs(t, err, errNotAllowed)
			} else {
				require.NoError(t, err)
			}
		})
	}

	_, err := newConfig(kubeconfig.Exec{Command: "missing", InstallHint: "get it"}, []string{"missing"}).lookPath()
	require.ErrorContains(t, err, "get it", "it is allowed, but not there")
}

func TestConfig_LookPathSkipsCurrentFolder(t *testing.T) {
	dir := t.TempDir()
	program(t, dir, "aws")
	t.Chdir(dir)
	t.Setenv("PATH", ".")
	_, err := newConfig(kubeconfig.Exec{Command: "aws"}, nil).lookPath()
	require.ErrorContains(t, err, "write the command as a path")
}
