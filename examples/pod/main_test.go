package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 2 * time.Minute

// newPod runs a pod until the test ends and returns its name.
func newPod(t *testing.T) string {
	t.Helper()
	cluster.NeedComponents(t, cluster.Nodes, cluster.ControllerManager, cluster.Scheduler)
	t.Setenv("KUBECONFIG", cluster.Kubeconfig(t))
	pods := client.Resource(t, client.Connect(t, "admin"), "pods")
	created, err := pods.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"generateName": "web-", "labels": map[string]any{"app": "example"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
	}}, nil)
	require.NoError(t, err)
	client.DeleteAtEnd(t, pods, created.GetName())
	require.Eventually(t, func() bool {
		now, err := pods.Get(t.Context(), created.GetName(), nil)
		require.NoError(t, err)
		phase, _, err := unstructured.Get[string](now, "status", "phase")
		return err == nil && phase == "Running"
	}, patience, 100*time.Millisecond)
	return created.GetName()
}

func pods(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	err = run(t.Context(), args, streams{strings.NewReader(stdin), &out, &errOut})
	return out.String(), errOut.String(), err
}

func TestExec(t *testing.T) {
	name := newPod(t)
	out, errOut, err := pods(t, "typed", "-n", "default", "-c", "web", "exec", "-i", name, "sh", "-c", "cat; echo oops >&2; exit 4")
	var exited *stream.ExitError
	require.ErrorAs(t, err, &exited)
	assert.Equal(t, 4, exited.Code)
	assert.Equal(t, "typed", out)
	assert.Equal(t, "oops\n", errOut)

	typed, keys := io.Pipe()
	defer func() { _ = keys.Close() }()
	screen := &typist{keys: keys}
	require.NoError(t, run(t.Context(), []string{"exec", "-i", "-t", name, "sh", "-c", "tty; read answer"}, streams{typed, screen, io.Discard}))
	assert.Contains(t, screen.text.String(), "/dev/")
}

// typist is the output of a terminal. It types a line once there is output.
type typist struct {
	text bytes.Buffer
	keys io.Writer
	once sync.Once
}

func (a *typist) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte("\n")) {
		a.once.Do(func() { go func() { _, _ = io.WriteString(a.keys, "seen\n") }() })
	}
	return a.text.Write(text)
}

func TestLogs(t *testing.T) {
	name := newPod(t)
	out, _, err := pods(t, "", "logs", "-tail", "1", name)
	require.NoError(t, err)
	assert.Equal(t, "a line on stderr\n", out)
	out, _, err = pods(t, "", "logs", "-l", "app=example")
	require.NoError(t, err)
	assert.Contains(t, out, name+"/web: hello from the sandbox\n")
	out, _, err = pods(t, "", "logs", "-p", name)
	require.NoError(t, err)
	assert.Equal(t, "hello from before the restart\n", out)
}

func TestCopy(t *testing.T) {
	name := newPod(t)
	from := filepath.Join(t.TempDir(), "from")
	there := filepath.Join(t.TempDir(), "there")
	back := filepath.Join(t.TempDir(), "back")
	require.NoError(t, os.WriteFile(from, []byte("text"), 0o600))
	_, stderr, err := pods(t, "", "cp", from, name+":"+there)
	require.NoError(t, err)
	assert.Contains(t, stderr, ". (4 bytes)")
	_, _, err = pods(t, "", "cp", name+":"+there, back)
	require.NoError(t, err)
	text, err := os.ReadFile(back)
	require.NoError(t, err)
	assert.Equal(t, "text", string(text))
}

func TestRun_Usage(t *testing.T) {
	t.Setenv("KUBECONFIG", cluster.Kubeconfig(t))
	for _, args := range [][]string{nil, {"run"}, {"exec", "web"}, {"cp", "x"}} {
		_, _, err := pods(t, "", args...)
		require.ErrorContains(t, err, "usage")
	}
	_, _, err := pods(t, "", "cp", "x", "y")
	require.ErrorContains(t, err, "one of them POD:PATH")
	_, _, err = pods(t, "", "-x")
	require.ErrorContains(t, err, "not defined")
}

func TestPortForward(t *testing.T) {
	name := newPod(t)
	for _, target := range []string{name, "pods/" + name} {
		ctx, stop := context.WithCancel(t.Context())
		read, write := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- run(ctx, []string{"-n", "default", "port-forward", target, "0:7"}, streams{nil, write, io.Discard})
		}()
		line, err := bufio.NewReader(read).ReadString('\n')
		require.NoError(t, err)
		var address, port, of string
		_, err = fmt.Sscanf(line, "forwarding %s to %s of %s", &address, &port, &of)
		require.NoError(t, err, line)
		assert.Equal(t, []string{"7", target}, []string{port, of})

		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		_, err = io.WriteString(conn, "echo")
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		back, err := io.ReadAll(conn)
		require.NoError(t, err)
		assert.Equal(t, "echo", string(back))
		require.NoError(t, conn.Close())
		stop()
		require.ErrorIs(t, <-ended, context.Canceled)
	}
	_, _, err := pods(t, "", "port-forward", name)
	require.ErrorContains(t, err, "usage: pod port-forward")
}
