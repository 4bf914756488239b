package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// obtained is what one run came to.
type obtained struct {
	who *identity
	err error
}

// ask asks for an identity in the background.
func (s *sharedIdentity) ask(ctx context.Context) <-chan obtained {
	result := make(chan obtained, 1)
	go func() {
		who, err := s.identity(ctx)
		result <- obtained{who, err}
	}()
	return result
}

func TestAPluginIsToldWhatItAskedFor(t *testing.T) {
	caFile := filepath.Join(t.TempDir(), "ca")
	require.NoError(t, os.WriteFile(caFile, []byte("PEM"), 0o600))
	const v1, v1beta1 = `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{`,
		`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{`
	for name, tc := range map[string]struct {
		cfg        Config
		apiVersion string
		cluster    bool
		config     string
		want       string
	}{
		"nothing": {Config{Server: "https://c"}, kubeconfig.ExecV1, false, `{"a":1}`, v1 + `"interactive":false}}`},
		"v1beta1": {Config{Server: "https://c"}, kubeconfig.ExecV1Beta1, false, "", v1beta1 + `"interactive":false}}`},
		"a cluster": {Config{Server: "https://c"}, kubeconfig.ExecV1, true, "",
			v1 + `"cluster":{"server":"https://c","config":null},"interactive":false}}`},
		"all of a cluster": {
			Config{Server: "https://c:6443/p", ServerName: "n", CAData: []byte("PEM"), ProxyURL: "http://p:1", DisableCompression: true},
			kubeconfig.ExecV1, true, `{"audience":"x"}`,
			v1 + `"cluster":{"server":"https://c:6443/p","tls-server-name":"n","certificate-authority-data":"UEVN",` +
				`"proxy-url":"http://p:1","disable-compression":true,"config":{"audience":"x"}},"interactive":false}}`,
		},
		"authorities of a file": {Config{Server: "https://c", CAFile: caFile}, kubeconfig.ExecV1, true, "",
			v1 + `"cluster":{"server":"https://c","certificate-authority-data":"UEVN","config":null},"interactive":false}}`},
		"any server": {Config{Server: "https://c", Insecure: true}, kubeconfig.ExecV1Beta1, true, "",
			v1beta1 + `"cluster":{"server":"https://c","insecure-skip-tls-verify":true,"config":null},"interactive":false}}`},
	} {
		t.Run(name, func(t *testing.T) {
			fake := NewFakePlugin(t)
			tc.cfg.Exec = fake.Plugin(t)
			tc.cfg.Exec.APIVersion, tc.cfg.Exec.ProvideClusterInfo = tc.apiVersion, tc.cluster
			tc.cfg.Exec.ClusterConfig = json.RawMessage(tc.config)
			tc.cfg.Exec.Args = []string{"get-token", "a b"}
			tc.cfg.Exec.Env = append(tc.cfg.Exec.Env, ExecEnv{"PLUGIN_ONLY", NewSecret("1")}, ExecEnv{"INHERITED", NewSecret("own")}, ExecEnv{"KUBERNETES_EXEC_INFO", NewSecret("x")})
			t.Setenv("INHERITED", "parent's")
			t.Setenv("PARENTS", "1")
			result := execAuthenticatorOf(t, &tc.cfg).ask(t.Context())
			run := fake.Next(t)
			run.Do(t, Order{Stdout: `{"kind":"ExecCredential","apiVersion":"` + tc.apiVersion + `","status":{"token":"t"}}`})
			require.NoError(t, (<-result).err)

			assert.Equal(t, tc.want, run.Info)
			assert.Equal(t, []string{tc.cfg.Exec.Command, "get-token", "a b"}, run.Args)
			assert.Subset(t, run.Env, []string{"PLUGIN_ONLY=1", "INHERITED=own", "PARENTS=1"})
			assert.NotContains(t, run.Env, "INHERITED=parent's")
			assert.Empty(t, run.Stdin)
		})
	}
}

func TestAPluginGetsTheTerminalWhereItMayAndOneIsThere(t *testing.T) {
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
			fake := NewFakePlugin(t)
			plugin := fake.Plugin(t)
			plugin.InteractiveMode = tc.mode
			a := execAuthenticatorOf(t, &Config{Exec: plugin})
			a.interactive, a.terminal = func() bool { return tc.terminal }, func() bool { return tc.terminal }
			result := a.ask(t.Context())
			run := fake.Next(t)
			run.Do(t, Order{Stdout: ExecToken("t")})
			require.NoError(t, (<-result).err)
			assert.Equal(t, tc.stdin, run.Stdin)
			assert.Equal(t, tc.stdin != "", bytes.Contains([]byte(run.Info), []byte(`"interactive":true`)), run.Info)
		})
	}
}

func TestAPluginThatMustHaveATerminalDoesNotRunWithoutOne(t *testing.T) {
	fake := NewFakePlugin(t)
	plugin := fake.Plugin(t)
	plugin.InteractiveMode = kubeconfig.InteractiveAlways
	_, err := execAuthenticatorOf(t, &Config{Exec: plugin}).identity(t.Context())
	require.ErrorContains(t, err, "needs a terminal")
	assert.Zero(t, fake.runs.Load())
}

func TestNoTerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer file.Close()
	assert.False(t, isTerminal(file))
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	assert.False(t, isTerminal(null))
	require.NoError(t, null.Close())
	assert.False(t, isTerminal(null), "closed")
}

func TestAPluginsFailureSaysWhatToDoAndShowsNothingItWrote(t *testing.T) {
	for name, tc := range map[string]struct {
		order Order
		says  string
	}{
		"exits 1":        {Order{Stdout: planted, Stderr: planted, Exit: 1}, "exit status 1"},
		"fails nicely":   {Order{Stdout: ExecToken(planted), Stderr: planted, Exit: 3}, "run it by hand"},
		"prints garbage": {Order{Stdout: "Hi " + planted, Stderr: planted}, "no ExecCredential in JSON"},
		"prints nothing": {Order{Stderr: planted}, "printed nothing"},
		"prints on and on, and would never end": {Order{Stdout: planted, Blank: 1 << 20, Stay: true},
			"more than 1 MiB"},
		"an expired token": {Order{Stdout: ExecToken(planted, time.Now().Add(-time.Hour))}, "check this machine's clock"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := NewFakePlugin(t)
			plugin := fake.Plugin(t)
			plugin.Args = []string{planted}
			a := execAuthenticatorOf(t, &Config{Exec: plugin})
			var stderr bytes.Buffer
			a.stderr = &stderr
			result := a.ask(t.Context())
			run := fake.Next(t)
			run.Do(t, tc.order)
			got := <-result
			require.ErrorContains(t, got.err, tc.says)
			assert.Nil(t, got.who)
			assert.ErrorContains(t, got.err, "exec plugin")
			assert.NotContains(t, got.err.Error(), planted)
			assert.Equal(t, tc.order.Stderr, stderr.String(), "people see what it tells them")
			run.Gone(t)
		})
	}
}

func TestAnAnswerOfTheGreatestSizeIsRead(t *testing.T) {
	for size, ok := range map[int]bool{maxExecAnswer: true, maxExecAnswer + 1: false} {
		fake := NewFakePlugin(t)
		a := execAuthenticatorOf(t, &Config{Exec: fake.Plugin(t)})
		result := a.ask(t.Context())
		answer := ExecToken("t")
		padding := bytes.Repeat([]byte(" "), size-len(answer))
		fake.Next(t).Do(t, Order{Stdout: answer + string(padding)})
		assert.Equal(t, ok, (<-result).err == nil, "%d", size)
	}
}

func TestAMissingPluginIsAnErrorWithItsInstallHint(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	notExecutable := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(notExecutable, []byte("x"), 0o600))
	noInterpreter := filepath.Join(dir, "script")
	require.NoError(t, os.WriteFile(noInterpreter, []byte("#!/missing/interpreter\n"), 0o700))
	for name, tc := range map[string]struct {
		plugin ExecPlugin
		says   []string
	}{
		"a name":                  {ExecPlugin{Command: "aws", InstallHint: "See https://aws.example\n"}, []string{"not there", "See https://aws.example"}},
		"a path":                  {ExecPlugin{Command: filepath.Join(dir, "aws"), InstallHint: "hint"}, []string{"not there", "hint"}},
		"no hint":                 {ExecPlugin{Command: "aws"}, []string{"put it in PATH"}},
		"not executable":          {ExecPlugin{Command: notExecutable, InstallHint: "hint"}, []string{"cannot be started", "permission denied"}},
		"without its interpreter": {ExecPlugin{Command: "script", InstallHint: "hint"}, []string{"not there", "hint"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.plugin.APIVersion, tc.plugin.Args = kubeconfig.ExecV1, []string{planted}
			_, err := execAuthenticatorOf(t, &Config{Exec: &tc.plugin}).identity(t.Context())
			for _, says := range append(tc.says, `exec plugin "`+tc.plugin.Command) {
				require.ErrorContains(t, err, says)
			}
			assert.NotContains(t, err.Error(), planted)
		})
	}
}

func TestAuthoritiesForAPluginThatCannotBeReadAreAnError(t *testing.T) {
	fake := NewFakePlugin(t)
	plugin := fake.Plugin(t)
	plugin.ProvideClusterInfo = true
	_, err := execAuthenticatorOf(t, &Config{Exec: plugin, CAFile: "/missing/ca"}).identity(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Zero(t, fake.runs.Load())
}

func TestAPluginThatHangsEndsWithItsCaller(t *testing.T) {
	fake := NewFakePlugin(t)
	a := execAuthenticatorOf(t, &Config{Exec: fake.Plugin(t)})
	ctx, cancel := context.WithCancel(t.Context())
	result := a.ask(ctx)
	run := fake.Next(t)
	cancel()
	got := <-result
	require.ErrorIs(t, got.err, context.Canceled)
	require.ErrorContains(t, got.err, "exec plugin")
	run.Gone(t)
}

func TestOneThatLeavesAProcessBehindHasAnswered(t *testing.T) {
	fake := NewFakePlugin(t)
	a := execAuthenticatorOf(t, &Config{Exec: fake.Plugin(t)})
	a.grace = time.Millisecond
	result := a.ask(t.Context())
	run := fake.Next(t)
	run.Do(t, Order{Stdout: ExecToken("t"), Child: true, Stay: true})
	child := fake.Next(t)
	run.Do(t, Order{})
	require.NoError(t, (<-result).err)
	child.Do(t, Order{Stay: true}) // it goes on
	require.NoError(t, child.conn.Close())
}

func TestAProgramsOutputIsDiscardedWhereItIsTooMuch(t *testing.T) {
	stopped := 0
	b := &boundedBuffer{most: 3, overflow: func() { stopped++ }}
	_, err := io.WriteString(b, "abc")
	require.NoError(t, err)
	_, err = io.WriteString(b, "d")
	require.Error(t, err)
	assert.Equal(t, 1, stopped)
	assert.True(t, b.full)
}
