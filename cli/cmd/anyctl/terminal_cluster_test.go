//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// patience is the time-out of each wait for the cluster.
const patience = 2 * time.Minute

// built is the program. The first test builds it.
type built struct {
	once   sync.Once
	folder string
	output []byte
	err    error
}

var program built

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(program.folder)
	os.Exit(code)
}

// anyctl builds the program and returns its path.
func anyctl(t *testing.T) string {
	t.Helper()
	program.once.Do(func() {
		if program.folder, program.err = os.MkdirTemp("", "anyctl-"); program.err == nil { //nolint:usetesting // for all tests
			program.output, program.err = exec.Command("go", "build", "-o", program.folder+"/anyctl", ".").CombinedOutput()
		}
	})
	require.NoError(t, program.err, "%s", program.output)
	return filepath.Join(program.folder, "anyctl")
}

// screen is the terminal of a running anyctl.
type screen struct {
	t      *testing.T
	tty    *os.File
	keys   *os.File // the terminal's other end
	cmd    *exec.Cmd
	before *term.State

	mu      sync.Mutex
	shown   bytes.Buffer
	changed chan struct{}
}

// start runs a command line of anyctl in a terminal of 80 columns.
func start(t *testing.T, args ...string) *screen {
	t.Helper()
	return startWith(t, "NO_COLOR=", args...)
}

// startWith is start with an environment variable.
func startWith(t *testing.T, variable string, args ...string) *screen {
	t.Helper()
	return startProgram(t, variable, anyctl(t), args...)
}

// startProgram runs a program in a terminal of 80 columns.
func startProgram(t *testing.T, variable, program string, args ...string) *screen {
	t.Helper()
	keys, tty, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(keys, &pty.Winsize{Cols: 80, Rows: 24}))
	s := &screen{t: t, tty: tty, keys: keys, changed: make(chan struct{}, 1)}
	s.before, err = term.GetState(int(tty.Fd()))
	require.NoError(t, err)
	s.cmd = exec.Command(program, args...)
	s.cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(t), "HOME="+t.TempDir(), "TERM=xterm", variable)
	s.cmd.Stdin = tty
	s.cmd.Stdout = tty
	s.cmd.Stderr = tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, s.cmd.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 4096)
		for {
			n, err := keys.Read(buffer)
			s.mu.Lock()
			s.shown.Write(buffer[:n])
			s.mu.Unlock()
			select {
			case s.changed <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = tty.Close()
		_ = keys.Close()
		<-read
	})
	return s
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// waitFor waits until the terminal has shown a text.
func (s *screen) waitFor(text string) {
	s.t.Helper()
	for deadline := time.After(patience); !strings.Contains(s.String(), text); {
		select {
		case <-s.changed:
		case <-deadline:
			require.Fail(s.t, "not shown: "+text, "%s", s)
		}
	}
}

func (s *screen) press(keys string) {
	s.t.Helper()
	_, err := io.WriteString(s.keys, keys)
	require.NoError(s.t, err)
}

// exitCode waits for the program's end.
func (s *screen) exitCode() int {
	s.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			require.NoError(s.t, err)
		}
	case <-time.After(patience):
		require.Fail(s.t, "the program runs on", "%s", s)
	}
	const endMark = "(the program has ended)" // written after all output of the program
	_, err := io.WriteString(s.tty, endMark)
	require.NoError(s.t, err)
	s.waitFor(endMark)
	if status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()) // as a shell reports it
	}
	return s.cmd.ProcessState.ExitCode()
}

// state returns the terminal's mode.
func (s *screen) state() *term.State {
	s.t.Helper()
	state, err := term.GetState(int(s.tty.Fd()))
	require.NoError(s.t, err)
	return state
}

// runningPod creates a pod in a namespace of the test's own and waits until it runs.
func runningPod(t *testing.T, tty bool) (namespace string) {
	t.Helper()
	cluster.NeedComponents(t, cluster.Nodes, cluster.ControllerManager, cluster.Scheduler)
	c := client.Connect(t, "admin")
	namespace = client.NewNamespace(t, c)
	pods := client.Resource(t, c, "pods").Namespace(namespace)
	accounts := client.Resource(t, c, "serviceaccounts").Namespace(namespace)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := accounts.Wait(ctx, "default", dynamic.Exists())
	require.NoError(t, err)
	_, err = pods.Create(ctx, &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "web-0", "labels": map[string]any{"app": "web"}},
		"spec": map[string]any{"containers": []any{
			map[string]any{"name": "web", "image": "busybox", "stdin": true, "tty": tty}}},
	}}, nil)
	require.NoError(t, err)
	_, err = pods.Wait(ctx, "web-0", dynamic.Ready())
	require.NoError(t, err)
	return namespace
}

func TestExec_TerminalAndResize(t *testing.T) {
	namespace := runningPod(t, false)
	s := start(t, "exec", "-n", namespace, "-it", "web-0", "--", "sh", "-c",
		`until [ "$(stty size)" = "24 80" ]; do sleep 0.05; done; echo sized; tty >/dev/null && echo terminal; until [ "$(stty size)" = "33 101" ]; do sleep 0.05; done; echo resized; read line; exit 7`)
	s.waitFor("sized\r\n") // the size follows the command's begin
	s.waitFor("terminal\r\n")
	assert.NotEqual(t, s.before, s.state(), "the terminal is in raw mode")
	require.NoError(t, pty.Setsize(s.keys, &pty.Winsize{Cols: 101, Rows: 33}))
	s.waitFor("resized")
	s.press("go\r")
	assert.Equal(t, 7, s.exitCode(), "%s", s)
	s.waitFor("command terminated with exit code 7")
	assert.Equal(t, s.before, s.state())
}

// In raw mode Ctrl-C is a key like all others: it interrupts the command in the container.
func TestExec_InterruptReachesCommand(t *testing.T) {
	namespace := runningPod(t, false)
	s := start(t, "exec", "-n", namespace, "-it", "web-0", "--", "sh", "-c", "echo begun; exec sleep 600")
	s.waitFor("begun")
	s.press("\x03")
	assert.Equal(t, 130, s.exitCode())
	assert.Equal(t, s.before, s.state())
}

func TestExec_BrokenConnectionRestoresTerminal(t *testing.T) {
	namespace := runningPod(t, false)
	server, cut := serverThroughProxy(t)
	s := start(t, "--server", server, "exec", "-n", namespace, "-it", "web-0", "--", "sh", "-c", "echo begun; sleep 600")
	s.waitFor("begun")
	require.NotEqual(t, s.before, s.state())
	cut()
	assert.Equal(t, 1, s.exitCode())
	s.waitFor("before the exit status arrived")
	assert.Equal(t, s.before, s.state())
}

func TestExec_KilledServerRestoresTerminal(t *testing.T) {
	namespace := runningPod(t, false)
	s := start(t, "exec", "-n", namespace, "-it", "web-0", "--", "sh", "-c", "echo begun; sleep 600")
	s.waitFor("begun")
	cluster.RestartAPIServer(t, true)
	assert.Equal(t, 1, s.exitCode())
	assert.Equal(t, s.before, s.state())
}

func TestAttach_Terminal(t *testing.T) {
	namespace := runningPod(t, true)
	s := start(t, "attach", "-n", namespace, "-it", "web-0")
	s.waitFor("If you don't see a command prompt, try pressing enter.")
	s.press("tty >/dev/null && echo 'a terminal'\r")
	s.waitFor("a terminal\r\n")
	s.press("\x10\x11")
	assert.Equal(t, 0, s.exitCode(), "%s", s)
	assert.Contains(t, s.String(), "Session ended, resume using 'anyctl attach web-0 -c web -n "+namespace+" -i -t' command")
	assert.Equal(t, s.before, s.state())
}

func TestLogs_ColorsAndInterrupt(t *testing.T) {
	namespace := runningPod(t, false)
	s := start(t, "logs", "-n", namespace, "-f", "-l", "app=web", "--prefix")
	s.waitFor("[pod/web-0/web]\x1b[0m hello from the sandbox")
	assert.Regexp(t, `\x1b\[[39][1-6]m\[pod/web-0/web\]`, s.String())
	s.press("\x03")
	assert.Equal(t, 1, s.exitCode(), "%s", s) // as kubectl
	assert.NotContains(t, s.String(), "error")
}

func TestTree_Colors(t *testing.T) {
	namespace := runningPod(t, false)
	s := start(t, "tree", "-n", namespace, "pod/web-0")
	assert.Equal(t, 0, s.exitCode(), "%s", s)
	s.waitFor("Pod/web-0   \x1b[32mCurrent\x1b[0m")
}

func TestGet_Colors(t *testing.T) {
	namespace := runningPod(t, false)
	s := start(t, "get", "-n", namespace, "pods")
	assert.Equal(t, 0, s.exitCode(), "%s", s)
	s.waitFor("\x1b[1mNAME\x1b[0m")
	s.waitFor("\x1b[32mRunning\x1b[0m")
	s = startWith(t, "NO_COLOR=1", "get", "-n", namespace, "pods")
	assert.Equal(t, 0, s.exitCode(), "%s", s)
	s.waitFor("Running")
	assert.NotContains(t, s.String(), "\x1b[")
}

func TestGet_WatchInterrupt(t *testing.T) {
	namespace := runningPod(t, false)
	s := start(t, "get", "-n", namespace, "pods", "-w")
	s.waitFor("web-0")
	s.press("\x03")
	assert.Equal(t, 1, s.exitCode(), "%s", s) // as kubectl
	assert.NotContains(t, s.String(), "rror")
}

func TestLogs_ClosedPipe(t *testing.T) {
	namespace := runningPod(t, false)
	for _, line := range []string{"logs -f web-0", "logs -f -l app=web", "describe pod web-0", "tree pod/web-0", "get pods", "get pods -o yaml", "get pods -w", "events", "api-resources"} {
		t.Run(line, func(t *testing.T) {
			cmd := exec.Command(anyctl(t), append(strings.Fields(line), "-n", namespace)...)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(t), "HOME="+t.TempDir())
			reader, writer, err := os.Pipe()
			require.NoError(t, err)
			require.NoError(t, reader.Close())
			var stderr bytes.Buffer
			cmd.Stdout = writer
			cmd.Stderr = &stderr
			require.Error(t, cmd.Run()) // by SIGPIPE, or code 1
			require.NoError(t, writer.Close())
			assert.Empty(t, stderr.String())
		})
	}
}

// serverThroughProxy returns the URL of a proxy to the API server, and a function for breaking its connections.
func serverThroughProxy(t *testing.T) (server string, cut func()) {
	t.Helper()
	return serverThroughLimit(t, func(in, out net.Conn) { _, _ = io.Copy(in, out) })
}

// serverThroughLimit is serverThroughProxy with a function for copying the responses.
func serverThroughLimit(t *testing.T, respond func(in, out net.Conn)) (server string, cut func()) {
	t.Helper()
	conn := client.Resource(t, client.Connect(t, "admin"), "pods").Conn()
	to, err := url.Parse(conn.Server())
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var mu sync.Mutex
	var open []net.Conn
	var pumps sync.WaitGroup
	cut = func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			_ = c.Close()
		}
	}
	pumps.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to.Host)
			if err != nil {
				_ = in.Close()
				continue
			}
			mu.Lock()
			open = append(open, in, out)
			mu.Unlock()
			pumps.Go(func() { respond(in, out); _ = in.Close() })
			pumps.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		cut()
		pumps.Wait()
	})
	return "https://" + listener.Addr().String(), cut
}
