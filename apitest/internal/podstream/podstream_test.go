package podstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/streams"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pod returns a pod with those containers.
func pod(name string, containers ...string) *unstructured.Object {
	var all []any
	for _, container := range containers {
		all = append(all, map[string]any{"name": container, "image": "busybox"})
	}
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "namespace": "default"},
		"spec": map[string]any{"containers": all}, "status": map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}}
}

// newServer returns a server with two pods: its logs are three lines with times, its commands echo.
func newServer(t *testing.T) *apitest.Server {
	t.Helper()
	return apitest.NewServer(t, &apitest.Options{
		Objects: []*unstructured.Object{pod("web", "app"), pod("two", "app", "side")},
		Streams: streams.Handlers{Logs: logs, Exec: run, Attach: run, PortForward: echo, Proxy: proxy},
	})
}

func logs(_ context.Context, pod streams.Pod, _ streams.LogOptions) (io.Reader, error) {
	var text strings.Builder
	for i := range 3 {
		fmt.Fprintf(&text, "2026-01-02T03:04:0%d.5Z line %d of %s\n", i, i, pod.Container)
	}
	return strings.NewReader(text.String()), nil
}

// run copies stdin to stdout in capitals, writes its command to stderr and exits with 3 if that is false.
func run(_ context.Context, session *streams.Session) error {
	if session.Stdin != nil {
		text, err := io.ReadAll(session.Stdin)
		if err != nil {
			return err
		}
		if _, err := session.Stdout.Write(bytes.ToUpper(text)); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(session.Stderr, "ran %q in %s\n", session.Command, session.Container); err != nil {
		return err
	}
	switch strings.Join(session.Command, " ") {
	case "false":
		return &streams.ExitError{Code: 3}
	case "broken":
		return errors.New("no such container runtime")
	}
	return nil
}

func echo(_ context.Context, _ streams.Pod, port int, conn io.ReadWriteCloser) error {
	if port != 80 {
		return fmt.Errorf("nothing listens on %d", port)
	}
	_, err := io.Copy(conn, conn)
	return err
}

func proxy(resource, namespace, name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprintf(w, "%s %s/%s %s", resource, namespace, name, req.URL)
	})
}

func pods(t *testing.T, server *apitest.Server) *dynamic.Resource {
	t.Helper()
	pods, err := server.Client().Resource(t.Context(), "pods")
	require.NoError(t, err)
	return pods.Namespace("default")
}

func TestHandler_Commands(t *testing.T) {
	server := newServer(t)
	kubectl := kubectlOf(t, server)
	out, stderr, err := kubectl("hello\n", "exec", "-i", "web", "--", "cat", "-")
	require.NoError(t, err, stderr)
	assert.Equal(t, "HELLO\n", out)
	assert.Contains(t, stderr, `ran ["cat" "-"] in app`)

	_, stderr, err = kubectl("", "exec", "two", "-c", "side", "--", "false")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 3, exit.ExitCode())
	assert.Contains(t, stderr, "in side")

	_, stderr, err = kubectl("", "exec", "web", "--", "broken")
	require.Error(t, err)
	assert.Contains(t, stderr, "no such container runtime")
	_, stderr, err = kubectl("", "exec", "web", "-c", "none", "--", "true")
	require.Error(t, err)
	assert.Contains(t, stderr, "container none is not valid for pod web")

	out, _, err = kubectl("typed", "attach", "-i", "web")
	require.NoError(t, err)
	assert.Contains(t, out, "TYPED")
}

func TestHandler_CommandsOverSPDY(t *testing.T) {
	t.Setenv("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "false")
	t.Setenv("KUBECTL_PORT_FORWARD_WEBSOCKETS", "false")
	kubectl := kubectlOf(t, newServer(t))
	out, stderr, err := kubectl("hello\n", "exec", "-i", "web", "--", "cat")
	require.NoError(t, err, stderr)
	assert.Equal(t, "HELLO\n", out)
	_, _, err = kubectl("", "exec", "web", "--", "false")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 3, exit.ExitCode())
}

func TestHandler_Logs(t *testing.T) {
	kubectl := kubectlOf(t, newServer(t))
	for arguments, want := range map[string]string{
		"web":                                   "line 0 of app\nline 1 of app\nline 2 of app\n",
		"web --tail=1":                          "line 2 of app\n",
		"two -c side --tail=2":                  "line 1 of side\nline 2 of side\n",
		"web --timestamps --tail=1":             "2026-01-02T03:04:02.5Z line 2 of app\n",
		"web --since-time=2026-01-02T03:04:02Z": "line 2 of app\n",
		"web -f":                                "line 0 of app\nline 1 of app\nline 2 of app\n",
		"web --limit-bytes=6":                   "line 0",
	} {
		out, stderr, err := kubectl("", append([]string{"logs"}, strings.Fields(arguments)...)...)
		require.NoError(t, err, "%s: %s", arguments, stderr)
		assert.Equal(t, want, out, arguments)
	}
}

func TestHandler_StreamPackage(t *testing.T) {
	server := newServer(t)
	resource := pods(t, server)
	cmd := stream.Command(t.Context(), resource, "web", "cat")
	cmd.Stdin = strings.NewReader("through the library")
	out, err := cmd.Output()
	require.NoError(t, err)
	assert.Equal(t, "THROUGH THE LIBRARY", string(out))

	err = stream.Command(t.Context(), resource, "web", "false").Run()
	var exit *stream.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 3, exit.Code)
}

func TestHandler_WithoutFunctions(t *testing.T) {
	server := apitest.NewServer(t, &apitest.Options{Objects: []*unstructured.Object{pod("web", "app")}})
	kubectl := kubectlOf(t, server)
	for _, arguments := range []string{"logs web", "exec web -- true"} {
		_, stderr, err := kubectl("", strings.Fields(arguments)...)
		require.Error(t, err, arguments)
		assert.Contains(t, stderr, "no function for this request", arguments)
	}
}

func TestHandler_Proxy(t *testing.T) {
	kubectl := kubectlOf(t, newServer(t))
	out, stderr, err := kubectl("", "get", "--raw", "/api/v1/namespaces/default/services/https:web:443/proxy/a/b?c=d")
	require.NoError(t, err, stderr)
	assert.Equal(t, "services default/https:web:443 /a/b?c=d", out)
}

// kubectlOf returns a function to run kubectl on the server with a timeout.
func kubectlOf(t *testing.T, server *apitest.Server) func(stdin string, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	path := cluster.Kubectl(t)
	kubeconfig := server.Kubeconfig(t)
	cache := filepath.Join(t.TempDir(), "cache")
	return func(stdin string, arguments ...string) (string, string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, path, arguments...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+cache)
		cmd.Stdin = strings.NewReader(stdin)
		var stdout, stderr bytes.Buffer
		cmd.Stdout = &stdout
		cmd.Stderr = &stderr
		err := cmd.Run()
		return stdout.String(), stderr.String(), err
	}
}

func TestHandler_PortForward(t *testing.T) {
	resource := pods(t, newServer(t))
	for _, text := range []string{"first", strings.Repeat("0123456789", 20_000)} {
		conn, err := stream.DialPort(t.Context(), resource, "web", 80)
		require.NoError(t, err)
		go func() { _, _ = io.WriteString(conn, text) }()
		got := make([]byte, len(text))
		_, err = io.ReadFull(conn, got)
		require.NoError(t, err)
		assert.Equal(t, text, string(got))
		require.NoError(t, conn.Close())
	}
	conn, err := stream.DialPort(t.Context(), resource, "web", 81)
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1))
	require.ErrorContains(t, err, "nothing listens on 81")
	require.NoError(t, conn.Close())
}

// TestHandler_FIPS140Only runs streams in a process with GODEBUG=fips140=only: unapproved algorithms panic.
func TestHandler_FIPS140Only(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("the FIPS 140-3 module does not run on every platform")
	}
	program, err := os.Executable()
	require.NoError(t, err)
	enforced := exec.CommandContext(t.Context(), program, "-test.v", "-test.run=^(TestHandler_StreamPackage|TestHandler_PortForward)$")
	enforced.Env = append(os.Environ(), "GODEBUG=fips140=only")
	output, err := enforced.CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.Equal(t, 2, strings.Count(string(output), "--- PASS"))
}
