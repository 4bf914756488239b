package stream_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/memconn"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// TestExec_RejectsBrokenHandshake has servers that open something else than the requested WebSocket.
func TestExec_RejectsBrokenHandshake(t *testing.T) {
	for name, lines := range map[string]string{
		"another protocol":       "Upgrade: h2c\r\nConnection: Upgrade\r\n",
		"no response to the key": "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n",
		"a wrong response":       "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, memconn.SwitchProtocols(lines, ""), func(t *testing.T, pods pods) {
				require.ErrorIs(t, execLs(t, pods), websocket.ErrBadHandshake)
			})
		})
	}
}

// TestExec_SurvivesBrokenProxy has an HTTP proxy that sends no HTTP response to CONNECT.
func TestExec_SurvivesBrokenProxy(t *testing.T) {
	for name, reply := range map[string]string{
		"a status without text": "HTTP/1.1 500\r\n\r\n",
		"no HTTP":               "\x1b[2Jgo away\r\n\r\n",
		"headers without end":   "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-More: "+strings.Repeat("x", 1000)+"\r\n", 4000),
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					_, _ = http.ReadRequest(bufio.NewReader(conn))
					_, _ = io.WriteString(conn, reply)
					_ = conn.Close()
				}
			}()
			defer func() { _ = listener.Close(); <-done }()
			conn, err := transport.Open(&transport.Config{Server: "https://server.test", ProxyURL: kubeconfig.NewSecret("http://" + listener.Addr().String())})
			require.NoError(t, err)
			defer conn.Close()
			err = stream.Exec(t.Context(), pods{conn}, "web-0", &stream.ExecOptions{Command: ls})
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "\x1b")
		})
	}
}

func execLs(t *testing.T, pods pods) error {
	return stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{Command: ls})
}

// reject responds as an API server does.
func reject(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code,
	})
}

func TestExec_HandshakeErrors(t *testing.T) {
	const missing = `pods "web-0" is forbidden: User "bob" cannot create resource "pods/exec" in API group "" in the namespace "shop"`
	for name, c := range map[string]struct {
		response http.HandlerFunc
		check    func(t *testing.T, err error)
	}{
		"not found": {
			func(w http.ResponseWriter, _ *http.Request) { reject(w, 404, "NotFound", `pods "web-0" not found`) },
			func(t *testing.T, err error) {
				require.True(t, apierrors.IsNotFound(err), "%v", err)
				assert.EqualError(t, err, `exec in pod "web-0": pods "web-0" not found`)
			},
		},
		"no RBAC rule": {
			func(w http.ResponseWriter, _ *http.Request) { reject(w, 403, "Forbidden", missing) },
			func(t *testing.T, err error) {
				require.True(t, apierrors.IsForbidden(err), "%v", err)
				assert.ErrorContains(t, err, missing)
				assert.ErrorContains(t, err, `{apiGroups: [""], resources: ["pods/exec"], verbs: ["get", "create"]}`)
			},
		},
		"forbidden for another reason": {
			func(w http.ResponseWriter, _ *http.Request) { reject(w, 403, "Forbidden", "the pod is privileged") },
			func(t *testing.T, err error) {
				require.True(t, apierrors.IsForbidden(err), "%v", err)
				assert.NotContains(t, err.Error(), "apiGroups")
			},
		},
		"at length": {
			func(w http.ResponseWriter, _ *http.Request) {
				reject(w, 422, "Invalid", strings.Repeat("much is wrong, ", 500)+"and this")
			},
			func(t *testing.T, err error) {
				require.True(t, apierrors.IsInvalid(err), "%v", err)
				assert.ErrorContains(t, err, "and this")
			},
		},
		"by a proxy": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(http.StatusBadGateway)
				_, _ = io.WriteString(w, "<html>bad gateway</html>")
			},
			func(t *testing.T, err error) {
				var status apierrors.APIStatus
				require.ErrorAs(t, err, &status)
				assert.Equal(t, int32(502), status.Status().Code)
				assert.ErrorContains(t, err, "requested v5.channel.k8s.io; servers have it since Kubernetes 1.31")
				assert.ErrorContains(t, err, "a proxy or a login page")
			},
		},
		"without an upgrade": {
			func(http.ResponseWriter, *http.Request) {},
			func(t *testing.T, err error) { assert.ErrorIs(t, err, websocket.ErrBadHandshake) },
		},
		"with another protocol": {
			upgrading(t, func(ws *websocket.Conn, _ *http.Request) { receive(ws) }),
			func(t *testing.T, err error) { assert.ErrorContains(t, err, `the server chose the protocol ""`) },
		},
		"by an older server": {
			func(w http.ResponseWriter, r *http.Request) {
				r.Header.Set("Sec-WebSocket-Protocol", "v4.channel.k8s.io")
				upgrading(t, func(ws *websocket.Conn, _ *http.Request) { receive(ws) }, "v4.channel.k8s.io")(w, r)
			},
			func(t *testing.T, err error) {
				assert.ErrorIs(t, err, websocket.ErrBadHandshake)
				assert.ErrorContains(t, err, "servers have it since Kubernetes 1.31, unless a feature gate is off")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, c.response, func(t *testing.T, pods pods) { c.check(t, execLs(t, pods)) })
		})
	}
}

func TestExec_DefaultContainer(t *testing.T) {
	const pod = `{"metadata": {"annotations": {%s}}, "spec": {"initContainers": [{"name": "init"}], "containers": [{"name": "web"}, {"name": "proxy"}]}}`
	for annotation, want := range map[string]string{
		"": "web", `"kubectl.kubernetes.io/default-container": "proxy"`: "proxy",
	} {
		asked := []string{}
		serving(t, func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Path+" "+r.FormValue("container"))
			switch {
			case !strings.HasSuffix(r.URL.Path, "exec"):
				_, _ = fmt.Fprintf(w, pod, annotation)
			case r.FormValue("container") == "":
				reject(w, 400, "BadRequest", "a container name must be specified for pod web-0, choose one of: [init web proxy]")
			default:
				upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
					send(ws, success)
					closeNormally(ws)
				}, v5)(w, r)
			}
		}, func(t *testing.T, pods pods) {
			require.NoError(t, execLs(t, pods))
			const path = "/api/v1/namespaces/shop/pods/web-0"
			assert.Equal(t, []string{path + "/exec ", path + " ", path + "/exec " + want}, asked)
		})
	}
}

func TestExec_DefaultContainerErrors(t *testing.T) {
	for name, response := range map[string]struct{ body, want string }{
		"no containers": {`{"spec": {}}`, "the pod has no containers"},
		"no JSON":       {`<html>`, "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "exec") {
					reject(w, 400, "BadRequest", "a container name must be specified for pod web-0")
					return
				}
				_, _ = io.WriteString(w, response.body)
			}, func(t *testing.T, pods pods) {
				err := execLs(t, pods)
				require.ErrorContains(t, err, "a container name must be specified")
				require.ErrorContains(t, err, response.want)
			})
		})
	}
}

func TestAttach_Streams(t *testing.T) {
	serving(t, upgrading(t, func(ws *websocket.Conn, r *http.Request) {
		assert.Equal(t, "/api/v1/namespaces/shop/pods/web-0/attach", r.URL.Path)
		assert.Equal(t, "container=web&stdin=true&stdout=true&tty=true", r.URL.Query().Encode())
		send(ws, "\x01"+strings.Join(receive(ws), "|"), exit3)
		closeNormally(ws)
	}, v5), func(t *testing.T, pods pods) {
		var stdout strings.Builder
		sizes := make(chan stream.TerminalSize)
		close(sizes)
		err := stream.Attach(t.Context(), pods, "web-0", &stream.AttachOptions{
			Container: "web", Stdin: strings.NewReader("hi"), Stdout: &stdout, Stderr: io.Discard, TTY: true, Resize: sizes,
		})
		var exited *stream.ExitError
		require.ErrorAs(t, err, &exited)
		assert.Equal(t, "\x00hi|\xff\x00", stdout.String())
	})
}
