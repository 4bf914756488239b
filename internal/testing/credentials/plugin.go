package credentials

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pluginAddress is an environment variable. It makes the test binary a plugin controlled by the test at that address.
const pluginAddress = "ANYKIND_TEST_PLUGIN"

func init() {
	if address := os.Getenv(pluginAddress); address != "" {
		os.Exit(runPlugin(address))
	}
}

// PluginState is the first report of a plugin to its test.
type PluginState struct {
	Info, Stdin string
	Args, Env   []string
}

// PluginAction lists the actions of a plugin. They are executed in the order of the fields.
type PluginAction struct {
	Stderr, Stdout string
	Blank          int  // KiB of white space to print
	Child          bool // starts another plugin with the same output
	Stay           bool // waits for the next action instead of exiting
	Exit           int
}

func runPlugin(address string) int {
	test, err := net.Dial("tcp", address)
	if err != nil {
		return 101
	}
	stdin, _ := io.ReadAll(os.Stdin)
	state := PluginState{Info: os.Getenv("KUBERNETES_EXEC_INFO"), Stdin: string(stdin), Args: os.Args, Env: os.Environ()}
	if json.NewEncoder(test).Encode(state) != nil {
		return 102
	}
	for actions := json.NewDecoder(test); ; {
		var action PluginAction
		if actions.Decode(&action) != nil {
			return 103
		}
		_, _ = io.WriteString(os.Stderr, action.Stderr)
		_, _ = io.WriteString(os.Stdout, action.Stdout)
		for range action.Blank {
			if _, err := io.WriteString(os.Stdout, strings.Repeat(" ", 1<<10)); err != nil {
				return 104
			}
		}
		if action.Child {
			child := exec.Command(os.Args[0])
			child.Path, _ = os.Executable()
			child.Stdout = os.Stdout
			child.Stderr = os.Stderr
			if child.Start() != nil {
				return 105
			}
		}
		if !action.Stay {
			return action.Exit
		}
	}
}

// Plugin is an exec plugin controlled by a test. Its command is the test binary, with Env in its environment.
type Plugin struct {
	Command  string
	Env      map[string]string
	listener *net.TCPListener
	runs     atomic.Int32
}

// NewPlugin returns a plugin. Each run blocks until the test calls [Plugin.Next].
func NewPlugin(t *testing.T) *Plugin {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	command, err := os.Executable()
	require.NoError(t, err)
	// With the race detector a program waits for a second before it exits.
	env := map[string]string{pluginAddress: listener.Addr().String(), "GORACE": "atexit_sleep_ms=0"}
	return &Plugin{Command: command, Env: env, listener: listener}
}

// Runs returns the number of runs of the plugin.
func (p *Plugin) Runs() int { return int(p.runs.Load()) }

// PluginRun is a run of the plugin.
type PluginRun struct {
	PluginState
	Conn net.Conn
}

// Next waits for the next run of the plugin.
func (p *Plugin) Next(t *testing.T) *PluginRun {
	t.Helper()
	require.NoError(t, p.listener.SetDeadline(time.Now().Add(20*time.Second)))
	run, err := p.accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = run.Conn.Close() })
	return run
}

func (p *Plugin) accept() (*PluginRun, error) {
	conn, err := p.listener.Accept()
	if err != nil {
		return nil, err
	}
	p.runs.Add(1)
	run := &PluginRun{Conn: conn}
	return run, json.NewDecoder(conn).Decode(&run.PluginState)
}

// Do sends an action to the plugin.
func (r *PluginRun) Do(t *testing.T, action PluginAction) {
	t.Helper()
	assert.NoError(t, json.NewEncoder(r.Conn).Encode(action))
}

// AwaitExit waits for the exit of the plugin's process.
func (r *PluginRun) AwaitExit(t *testing.T) {
	t.Helper()
	require.NoError(t, r.Conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	_, err := r.Conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

// Serve serves every run until the test ends. The n-th run executes the n-th action. Further runs repeat the last action.
func (p *Plugin) Serve(t *testing.T, actions ...PluginAction) {
	t.Helper()
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = p.listener.Close()
		<-done
	})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			run, err := p.accept()
			if err != nil {
				return
			}
			run.Do(t, actions[min(n, len(actions)-1)])
			_, _ = io.Copy(io.Discard, run.Conn)
			_ = run.Conn.Close()
		}
	}()
}

// ExecV1 is the newest version of ExecCredential.
const ExecV1 = "client.authentication.k8s.io/v1"

// TokenOutput returns the output of a plugin with a token.
func TokenOutput(token string, expires ...time.Time) string {
	return execCredential(map[string]any{"token": token}, expires)
}

// CertificateOutput returns the output of a plugin with a client certificate.
func CertificateOutput(certificate, key []byte, expires ...time.Time) string {
	return execCredential(map[string]any{"clientCertificateData": string(certificate), "clientKeyData": string(key)}, expires)
}

func execCredential(status map[string]any, expires []time.Time) string {
	if len(expires) > 0 {
		status["expirationTimestamp"] = expires[0].UTC().Format(time.RFC3339)
	}
	output, _ := json.Marshal(map[string]any{"kind": "ExecCredential", "apiVersion": ExecV1, "status": status})
	return string(output)
}
