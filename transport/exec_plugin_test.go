package transport

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

	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pluginAddress is the variable that makes the test binary a plugin, which does what the test at that address says.
const pluginAddress = "ANYKIND_TEST_PLUGIN"

func init() {
	if address := os.Getenv(pluginAddress); address != "" {
		os.Exit(bePlugin(address))
	}
}

// greeting is what a plugin tells its test first.
type greeting struct {
	Info, Stdin string
	Args, Env   []string
}

// Order is what a test tells a plugin to do, from the first field to the last.
type Order struct {
	Stderr, Stdout string
	Blank          int  // KiB of white space to print
	Child          bool // starts another plugin, which holds the same output
	Stay           bool // waits for the next order, and does not exit
	Exit           int
}

func bePlugin(address string) int {
	test, err := net.Dial("tcp", address)
	if err != nil {
		return 101
	}
	stdin, _ := io.ReadAll(os.Stdin)
	hello := greeting{Info: os.Getenv("KUBERNETES_EXEC_INFO"), Stdin: string(stdin), Args: os.Args, Env: os.Environ()}
	if json.NewEncoder(test).Encode(hello) != nil {
		return 102
	}
	for orders := json.NewDecoder(test); ; {
		var order Order
		if orders.Decode(&order) != nil {
			return 103
		}
		_, _ = io.WriteString(os.Stderr, order.Stderr)
		_, _ = io.WriteString(os.Stdout, order.Stdout)
		for range order.Blank {
			if _, err := io.WriteString(os.Stdout, strings.Repeat(" ", 1<<10)); err != nil {
				return 104
			}
		}
		if order.Child {
			child := exec.Command(os.Args[0])
			child.Path, _ = os.Executable()
			child.Stdout, child.Stderr = os.Stdout, os.Stderr
			if child.Start() != nil {
				return 105
			}
		}
		if !order.Stay {
			return order.Exit
		}
	}
}

// FakePlugin is a real program that a test commands.
type FakePlugin struct {
	listener *net.TCPListener
	runs     atomic.Int32
}

// NewFakePlugin makes one that waits in each run for [FakePlugin.Next].
func NewFakePlugin(t *testing.T) *FakePlugin {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return &FakePlugin{listener: listener}
}

// Plugin is the configuration that runs it.
func (p *FakePlugin) Plugin(t *testing.T) *ExecPlugin {
	t.Helper()
	command, err := os.Executable()
	require.NoError(t, err)
	return &ExecPlugin{
		APIVersion: kubeconfig.ExecV1, Command: command,
		// The race detector's programs would wait for a second before they exit.
		Env: []ExecEnv{{pluginAddress, NewSecret(p.listener.Addr().String())}, {"GORACE", NewSecret("atexit_sleep_ms=0")}},
	}
}

// FakeRun is one run of the program.
type FakeRun struct {
	greeting
	conn net.Conn
}

// Next waits until the program runs.
func (p *FakePlugin) Next(t *testing.T) *FakeRun {
	t.Helper()
	require.NoError(t, p.listener.SetDeadline(time.Now().Add(20*time.Second)))
	run, err := p.accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = run.conn.Close() })
	return run
}

func (p *FakePlugin) accept() (*FakeRun, error) {
	conn, err := p.listener.Accept()
	if err != nil {
		return nil, err
	}
	p.runs.Add(1)
	run := &FakeRun{conn: conn}
	return run, json.NewDecoder(conn).Decode(&run.greeting)
}

// Do orders.
func (r *FakeRun) Do(t *testing.T, order Order) {
	t.Helper()
	assert.NoError(t, json.NewEncoder(r.conn).Encode(order))
}

// Gone waits until the program's process has ended.
func (r *FakeRun) Gone(t *testing.T) {
	t.Helper()
	require.NoError(t, r.conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	_, err := r.conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

// Serve gives its orders run by run, the last one again and again, until the test ends.
func (p *FakePlugin) Serve(t *testing.T, orders ...Order) {
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
			run.Do(t, orders[min(n, len(orders)-1)])
			_, _ = io.Copy(io.Discard, run.conn)
			_ = run.conn.Close()
		}
	}()
}

// ExecToken is the answer of a plugin that has a token.
func ExecToken(token string, expires ...time.Time) string {
	return execAnswerOf(map[string]any{"token": token}, expires)
}

// ExecCertificate is the answer of a plugin that has a client certificate.
func ExecCertificate(certificate, key []byte, expires ...time.Time) string {
	return execAnswerOf(map[string]any{"clientCertificateData": string(certificate), "clientKeyData": string(key)}, expires)
}

func execAnswerOf(status map[string]any, expires []time.Time) string {
	if len(expires) > 0 {
		status["expirationTimestamp"] = expires[0].UTC().Format(time.RFC3339)
	}
	answer, _ := json.Marshal(map[string]any{"kind": "ExecCredential", "apiVersion": kubeconfig.ExecV1, "status": status})
	return string(answer)
}

// execAuthenticatorOf is what Open makes of a plugin, apart from what a terminal would change.
func execAuthenticatorOf(t *testing.T, cfg *Config) *execAuthenticator {
	t.Helper()
	made, err := newExecAuthenticator(cfg)
	require.NoError(t, err)
	a := made.(*execAuthenticator)
	a.interactive, a.terminal, a.stderr = func() bool { return false }, func() bool { return false }, io.Discard
	return a
}
