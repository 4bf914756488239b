//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// anyctlCommand returns a command line of anyctl.
func anyctlCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(anyctl(t), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(t), "HOME="+t.TempDir())
	return cmd
}

// background starts a command line and returns its output. It is interrupted at the test's end.
func background(t *testing.T, args ...string) *bufio.Reader {
	t.Helper()
	cmd := anyctlCommand(t, args...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(stderr.String())
		}
	})
	return bufio.NewReader(out)
}

// portIn reads a line matching pattern, and returns its port.
func portIn(t *testing.T, out *bufio.Reader, pattern string) string {
	t.Helper()
	line, err := out.ReadString('\n')
	require.NoError(t, err)
	found := regexp.MustCompile(pattern).FindStringSubmatch(line)
	require.NotNil(t, found, line)
	return found[1]
}

// echo sends a text through a port and returns the response.
func echo(port, text string) (string, error) {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	response, err := io.ReadAll(conn)
	return string(response), err
}

// After the deletion of the forwarded pod, clients reach a second pod of the service.
func TestPortForward_SurvivesPod(t *testing.T) {
	namespace := runningPod(t, false)
	c := client.Connect(t, "admin")
	services := client.Resource(t, c, "services").Namespace(namespace)
	_, err := services.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "web"},
		"spec":     map[string]any{"selector": map[string]any{"app": "web"}, "ports": []any{map[string]any{"port": int64(70), "targetPort": int64(7)}}},
	}}, nil)
	require.NoError(t, err)
	out := background(t, "port-forward", "-n", namespace, "svc/web", ":70", "--address=127.0.0.1")
	port := portIn(t, out, `^Forwarding from 127\.0\.0\.1:(\d+) -> 7\n$`)
	got, err := echo(port, "one")
	require.NoError(t, err)
	assert.Equal(t, "one", got)
	assert.Equal(t, port, portIn(t, out, `^Handling connection for (\d+)\n$`))

	pods := client.Resource(t, c, "pods").Namespace(namespace)
	first, err := pods.Get(t.Context(), "web-0", nil)
	require.NoError(t, err)
	second := first.DeepCopy()
	second.Object["metadata"] = map[string]any{"name": "web-1", "labels": map[string]any{"app": "web"}}
	delete(second.Object, "status")
	_, err = pods.Create(t.Context(), second, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = pods.Wait(ctx, "web-1", dynamic.Ready())
	require.NoError(t, err)
	zero := int64(0)
	_, err = pods.Delete(ctx, "web-0", &metav1.DeleteOptions{GracePeriodSeconds: &zero})
	require.NoError(t, err)
	_, err = pods.Wait(ctx, "web-0", dynamic.Deleted())
	require.NoError(t, err)
	require.Eventually(t, func() bool { got, err := echo(port, "two"); return err == nil && got == "two" }, patience, patience/1000)
}

func TestCp_RetriesLostConnection(t *testing.T) {
	namespace := runningPod(t, false)
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	source := filepath.Join(t.TempDir(), "large") // containers see this machine's files
	require.NoError(t, os.WriteFile(source, content, 0o600))
	copyThrough := func(t *testing.T, cuts int64, args ...string) (string, error) {
		var left atomic.Int64
		left.Store(cuts)
		server, _ := serverThroughLimit(t, func(in, out net.Conn) {
			if n, _ := io.CopyN(in, out, int64(len(content)/4)); n == int64(len(content)/4) && left.Add(-1) >= 0 {
				_ = out.Close()
				return
			}
			_, _ = io.Copy(in, out)
		})
		local := filepath.Join(t.TempDir(), "copy")
		cmd := anyctlCommand(t, append([]string{"cp", "--server", server, namespace + "/web-0:" + source, local}, args...)...)
		output, err := cmd.CombinedOutput()
		if err == nil {
			data, err := os.ReadFile(local)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(content, data), "the copy is complete")
		}
		return string(output), err
	}
	output, err := copyThrough(t, 2, "--retries=2")
	require.NoError(t, err, "%s", output)
	assert.Equal(t, 2, strings.Count(output, "the copy begins again"), "%s", output)
	output, err = copyThrough(t, 1)
	require.Error(t, err, "%s", output)
}

func TestCp_BothDirections(t *testing.T) {
	namespace := runningPod(t, false)
	folder := t.TempDir()
	inside := t.TempDir() // containers of the sandbox have this machine's files
	source := filepath.Join(folder, "source")
	require.NoError(t, os.MkdirAll(filepath.Join(source, "below"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(source, "a"), []byte("hello"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(source, "below", "b"), bytes.Repeat([]byte("x"), 3<<20), 0o640))
	for _, c := range []struct{ from, to, want string }{
		{source, "web-0:" + inside + "/new", inside + "/new/below/b"},
		{source, namespace + "/web-0:" + inside, inside + "/source/a"},
		{source + "/a", "web-0:" + inside, inside + "/a"},
		{source + "/a", "web-0:" + inside + "/other", inside + "/other"},
		{"web-0:" + inside + "/new", folder + "/back", folder + "/back/below/b"},
		{"web-0:" + inside + "/a", folder + "/file", folder + "/file"},
		{"web-0:" + inside + "/other", folder, folder + "/other"},
	} {
		output, err := anyctlCommand(t, "cp", "-n", namespace, c.from, c.to).CombinedOutput()
		require.NoError(t, err, "%s", output)
		assert.Empty(t, string(output))
		got, err := os.ReadFile(c.want)
		require.NoError(t, err)
		want := "hello"
		if strings.HasSuffix(c.want, "b") {
			want = strings.Repeat("x", 3<<20)
		}
		assert.True(t, want == string(got), "%s: %d bytes", c.want, len(got))
	}
}

// Followed logs include new pods.
func TestLogs_FollowAddsPods(t *testing.T) {
	namespace := runningPod(t, false)
	out := background(t, "logs", "-n", namespace, "-f", "-l", "app=web", "--prefix", "--max-log-requests=2")
	readUntil := func(text string) {
		t.Helper()
		for {
			line, err := out.ReadString('\n')
			require.NoError(t, err)
			if line == text {
				return
			}
		}
	}
	readUntil("[pod/web-0/web] hello from the sandbox\n")
	pods := client.Resource(t, client.Connect(t, "admin"), "pods").Namespace(namespace)
	_, err := pods.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "web-1", "labels": map[string]any{"app": "web"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "busybox"}}},
	}}, nil)
	require.NoError(t, err)
	readUntil("[pod/web-1/web] hello from the sandbox\n")
}

func TestProxy_ServesAPI(t *testing.T) {
	namespace := runningPod(t, false)
	www := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(www, "page.html"), []byte("a page"), 0o600))
	out := background(t, "proxy", "--port=0", "--api-prefix=/k8s", "--www="+www, "--www-prefix=/files/")
	address := "127.0.0.1:" + portIn(t, out, `^Starting to serve on 127\.0\.0\.1:(\d+)\n$`)
	for path, want := range map[string]int{
		"/k8s/api/v1/namespaces/" + namespace + "/pods/web-0":       200,
		"/k8s/api/v1/namespaces/" + namespace + "/pods/none":        404,
		"/k8s/api/v1/namespaces/" + namespace + "/pods/web-0/exec":  403,
		"/k8s//api/v1/namespaces/" + namespace + "/pods/web-0/exec": 403, // after a redirect
		"/k8s/api/v1/%6eamespaces/x/pods/y/%65xec":                  403,
		"/api/v1":          404,
		"/files/page.html": 200,
		"/files/none":      404,
	} {
		response, err := http.Get("http://" + address + path)
		require.NoError(t, err)
		_ = response.Body.Close()
		assert.Equal(t, want, response.StatusCode, path)
	}
	foreign, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/k8s/version", nil)
	require.NoError(t, err)
	foreign.Host = "evil.example.com"
	response, err := http.DefaultClient.Do(foreign)
	require.NoError(t, err)
	_ = response.Body.Close()
	assert.Equal(t, http.StatusForbidden, response.StatusCode)

	// kubectl works through it, watches and upgrades included.
	out = background(t, "proxy", "--port=0", "--reject-paths=^$")
	server := "http://127.0.0.1:" + portIn(t, out, `^Starting to serve on 127\.0\.0\.1:(\d+)\n$`)
	for line, want := range map[string]string{
		"get pod web-0 -o name":                 "pod/web-0\n",
		"exec web-0 -- echo through":            "through\n",
		"wait pod/web-0 --for=condition=Ready":  "pod/web-0 condition met\n",
		"logs web-0 --limit-bytes=5 --tail=100": "hello",
	} {
		cmd := exec.Command(cluster.Kubectl(t), append([]string{"-s", server, "-n", namespace}, strings.Fields(line)...)...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=/dev/null"}
		output, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", line, output)
		assert.Equal(t, want, string(output), line)
	}
}

func TestProxy_RejectsPagesOfOtherOrigins(t *testing.T) {
	cluster.NeedComponents(t, cluster.APIServer)
	namespace := client.NewNamespace(t, client.Connect(t, "admin"))
	out := background(t, "proxy", "--port=0", "--accept-origins=^http://accepted.example$")
	address := "127.0.0.1:" + portIn(t, out, `^Starting to serve on 127\.0\.0\.1:(\d+)\n$`)
	secrets := "http://" + address + "/api/v1/namespaces/" + namespace + "/secrets"
	send := func(method, query, body string, header http.Header) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, secrets+query, strings.NewReader(body))
		require.NoError(t, err)
		request.Header = header
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	for _, c := range []struct {
		origin, site string
		accepted     bool
	}{
		{"", "", true},
		{"http://" + address, "same-origin", true},
		{"http://accepted.example", "cross-site", true},
		{"http://evil.example", "cross-site", false},
		{"http://localhost:3000", "same-site", false},
		{"", "cross-site", false},
	} {
		header := http.Header{}
		if c.origin != "" {
			header.Set("Origin", c.origin)
		}
		if c.site != "" {
			header.Set("Sec-Fetch-Site", c.site)
		}
		upgrade := header.Clone()
		upgrade.Set("Connection", "Upgrade")
		upgrade.Set("Upgrade", "websocket")
		upgrade.Set("Sec-WebSocket-Version", "13")
		upgrade.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
		want := map[bool][]int{true: {200, 201, 101}, false: {403, 403, 403}}[c.accepted]
		if c.origin == "" {
			want = want[:2] // the API server itself rejects upgrades without Origin
		}
		secret := `{"apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": "x-"}}`
		got := []int{
			send(http.MethodGet, "", "", header), send(http.MethodPost, "", secret, header), send(http.MethodGet, "?watch=true", "", upgrade),
		}
		assert.Equal(t, want, got[:len(want)], "%+v", c)
	}
}

func TestProxy_UnixSocketIsPrivate(t *testing.T) {
	cluster.NeedComponents(t, cluster.APIServer)
	folder, err := os.MkdirTemp("", "proxy-") //nolint:usetesting // t.TempDir's path may be too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	path := folder + "/api.sock"
	out := background(t, "proxy", "--unix-socket="+path)
	line, err := out.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("Starting to serve on %s\n", path), line)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	response, err := (&http.Client{Transport: transport}).Get("http://localhost/version")
	require.NoError(t, err)
	_ = response.Body.Close()
	assert.Equal(t, http.StatusOK, response.StatusCode)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "the folder in which the socket was made is gone")
}
