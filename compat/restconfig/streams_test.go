package restconfig_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // portforward.New takes its Dialer
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/anykind/anykind/compat/restconfig"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/unstructured"
)

// echoPort of the sandbox's pods echoes.
const echoPort = 7

// runPod runs a pod "web" in a new namespace and returns the pods of it.
func runPod(t *testing.T) *dynamic.Resource {
	t.Helper()
	cluster.NeedComponents(t, cluster.Nodes, cluster.ControllerManager, cluster.Scheduler)
	c := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, c)
	_, err := client.Resource(t, c, "serviceaccounts").Namespace(namespace).Create(t.Context(), object("default"), nil)
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
	pods := client.Resource(t, c, "pods").Namespace(namespace)
	pod := object("web")
	pod.Object["spec"] = map[string]any{"containers": []any{map[string]any{"name": "web", "image": "busybox", "stdin": true}}}
	require.EventuallyWithT(t, func(attempt *assert.CollectT) {
		_, err := pods.Create(t.Context(), pod, nil)
		require.NoError(attempt, err)
	}, 3*time.Minute, 100*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	_, err = pods.Wait(ctx, "web", dynamic.FieldEquals("status.phase", "Running"))
	require.NoError(t, err)
	return pods
}

func object(name string) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}}}
}

// configs returns configs of the sandbox's user: client-go's own as the oracle, and ours.
func configs(t *testing.T) map[string]*rest.Config {
	execs := sandboxConfig(t, "admin")
	execTokens(t, execs, sandboxConfig(t, "token").BearerToken)
	return map[string]*rest.Config{
		"client-go's own":              sandboxConfig(t, "admin"),
		"FromConn":                     restconfig.FromConn(sandboxConn(t, "admin")),
		"FromConn, token":              restconfig.FromConn(sandboxConn(t, "token")),
		"FromConn of ToConn, exec":     restconfig.FromConn(toConn(t, execs)),
		"FromConn, as another user":    impersonating(restconfig.FromConn(sandboxConn(t, "admin"))),
		"FromConn, further round trip": wrapping(restconfig.FromConn(sandboxConn(t, "admin"))),
	}
}

func impersonating(config *rest.Config) *rest.Config {
	config.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"system:masters"}}
	return config
}

func wrapping(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return roundTripper{next, next.RoundTrip} })
	return config
}

// podURL returns the URL of a subresource of a pod.
func podURL(t *testing.T, config *rest.Config, pods *dynamic.Resource, pod, subresource string, query url.Values) *url.URL {
	t.Helper()
	path, err := pods.Path(pod)
	require.NoError(t, err)
	u, err := url.Parse(strings.TrimSuffix(config.Host, "/") + path + "/" + subresource + "?" + query.Encode())
	require.NoError(t, err)
	return u
}

func executors(t *testing.T, config *rest.Config, u *url.URL) map[string]remotecommand.Executor {
	t.Helper()
	overSPDY, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, u)
	require.NoError(t, err)
	overWebSocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, u.String())
	require.NoError(t, err)
	fallback, err := remotecommand.NewFallbackExecutor(overWebSocket, overSPDY, httpstream.IsUpgradeFailure)
	require.NoError(t, err)
	return map[string]remotecommand.Executor{"SPDY": overSPDY, "WebSocket": overWebSocket, "fallback": fallback}
}

func TestFromConn_Exec(t *testing.T) {
	pods := runPod(t)
	large := strings.Repeat("0123456789abcdef", 100_000)
	for name, config := range configs(t) {
		u := podURL(t, config, pods, "web", "exec", url.Values{
			"container": {"web"}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"},
			"command": {"sh", "-c", "cat; echo failed >&2; exit 7"},
		})
		for protocol, executor := range executors(t, config, u) {
			t.Run(name+"/"+protocol, func(t *testing.T) {
				var stdout, stderr bytes.Buffer
				err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{
					Stdin: strings.NewReader(large), Stdout: &stdout, Stderr: &stderr,
				})
				var exited utilexec.CodeExitError
				require.ErrorAs(t, err, &exited)
				assert.Equal(t, 7, exited.Code)
				assert.Equal(t, len(large), stdout.Len())
				assert.Equal(t, "failed\n", stderr.String())
			})
		}
	}
}

func TestFromConn_ExecRejected(t *testing.T) {
	pods := runPod(t)
	query := url.Values{"container": {"web"}, "stdout": {"true"}, "command": {"true"}}
	limited := map[string]*rest.Config{"own": sandboxConfig(t, "limited"), "FromConn": restconfig.FromConn(sandboxConn(t, "limited"))}
	admin := map[string]*rest.Config{"own": sandboxConfig(t, "admin"), "FromConn": restconfig.FromConn(sandboxConn(t, "admin"))}
	for name, c := range map[string]struct {
		configs map[string]*rest.Config
		pod     string
	}{"missing pod": {admin, "missing"}, "forbidden": {limited, "web"}} {
		t.Run(name, func(t *testing.T) {
			texts := map[string][]string{}
			for _, from := range []string{"own", "FromConn"} {
				config := c.configs[from]
				for protocol, executor := range executors(t, config, podURL(t, config, pods, c.pod, "exec", query)) {
					err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
					require.Error(t, err)
					texts[protocol] = append(texts[protocol], fmt.Sprintf("%v %v", httpstream.IsUpgradeFailure(err), err))
				}
			}
			for protocol, pair := range texts {
				assert.Equal(t, pair[0], pair[1], protocol)
			}
		})
	}
}

func TestFromConn_ExecContextEnds(t *testing.T) {
	pods := runPod(t)
	config := restconfig.FromConn(sandboxConn(t, "admin"))
	u := podURL(t, config, pods, "web", "exec", url.Values{"container": {"web"}, "stdout": {"true"}, "command": {"sh", "-c", "echo here; sleep 600"}})
	for protocol, executor := range executors(t, config, u) {
		t.Run(protocol, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			output := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
			err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: output})
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestFromConn_PortForward(t *testing.T) {
	pods := runPod(t)
	for name, config := range configs(t) {
		u := podURL(t, config, pods, "web", "portforward", nil)
		next, upgrader, err := spdy.RoundTripperFor(config)
		require.NoError(t, err)
		tunnel, err := portforward.NewSPDYOverWebsocketDialer(u, config)
		require.NoError(t, err)
		for protocol, dialer := range map[string]httpstream.Dialer{
			"SPDY": spdy.NewDialer(upgrader, &http.Client{Transport: next}, http.MethodPost, u), "WebSocket": tunnel,
		} {
			t.Run(name+"/"+protocol, func(t *testing.T) { checkPortForward(t, dialer) })
		}
	}
}

// checkPortForward echoes through a forwarded port, twice.
func checkPortForward(t *testing.T, dialer httpstream.Dialer) {
	t.Helper()
	stop := make(chan struct{})
	ready := make(chan struct{})
	forwarder, err := portforward.New(dialer, []string{fmt.Sprintf("0:%d", echoPort)}, stop, ready, io.Discard, io.Discard)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-done:
		require.NoError(t, err)
	}
	ports, err := forwarder.GetPorts()
	require.NoError(t, err)
	for range 2 {
		conn, err := net.Dial("tcp", fmt.Sprintf("localhost:%d", ports[0].Local)) //nolint:noctx // a test
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(3*time.Minute)))
		text := strings.Repeat("ping", 50_000)
		go func() { _, _ = io.WriteString(conn, text) }()
		echo := make([]byte, len(text))
		_, err = io.ReadFull(conn, echo)
		require.NoError(t, err)
		assert.Equal(t, text, string(echo))
		require.NoError(t, conn.Close())
	}
	close(stop)
	require.NoError(t, <-done)
}

func TestToConn_Streams(t *testing.T) {
	pods := runPod(t)
	path, err := pods.Path("web")
	require.NoError(t, err)
	execs := sandboxConfig(t, "admin")
	plugin := execTokens(t, execs, "expired", sandboxConfig(t, "token").BearerToken)
	for name, config := range map[string]*rest.Config{
		"certificate": sandboxConfig(t, "admin"), "exec plugin": execs, "wrapped": wrapping(sandboxConfig(t, "admin")),
		"impersonated": impersonating(sandboxConfig(t, "admin")),
	} {
		t.Run(name, func(t *testing.T) {
			own, _, err := dynamic.New(toConn(t, config), nil).ForPath(t.Context(), path)
			require.NoError(t, err)
			output, err := stream.Command(t.Context(), own, "web", "echo", "hello").Output()
			require.NoError(t, err)
			assert.Equal(t, "hello\n", string(output))
			conn, err := stream.DialPort(t.Context(), own, "web", echoPort)
			require.NoError(t, err)
			_, err = io.WriteString(conn, "ping")
			require.NoError(t, err)
			echo := make([]byte, 4)
			_, err = io.ReadFull(conn, echo)
			require.NoError(t, err)
			assert.Equal(t, "ping", string(echo))
			require.NoError(t, conn.Close())
		})
	}
	assert.Equal(t, 2, plugin.Runs())
}
