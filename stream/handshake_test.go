package stream_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/anykind/anykind/stream"
	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func execLs(t *testing.T, pods pods) error {
	return stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{Command: ls})
}

// refuse answers as an API server does.
func refuse(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code,
	})
}

func TestAnOlderServerIsSpokenToInItsOwnProtocol(t *testing.T) {
	greet := func(ws *websocket.Conn, _ *http.Request) {
		say(ws, "\x01"+ws.Subprotocol(), exit3)
		goodbye(ws)
	}
	var asked []string
	for name, handler := range map[string]http.HandlerFunc{
		"that chooses": upgrading(t, greet, v4),
		"that refuses what it does not know": func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.Header.Get("Sec-WebSocket-Protocol"))
			if asked[len(asked)-1] != v4 {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			upgrading(t, greet, v4)(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, handler, func(t *testing.T, pods pods) {
				out, err := stream.Command(t.Context(), pods, "web-0", "ls").Output()
				var exited *stream.ExitError
				require.ErrorAs(t, err, &exited)
				assert.Equal(t, v4, string(out))
			})
		})
	}
	assert.Equal(t, []string{v5 + ", " + v4, v4}, asked)
}

func TestAnOlderServerCannotEndTheInput(t *testing.T) {
	serving(t, upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
		_, message, err := ws.ReadMessage()
		assert.NoError(t, err)
		if string(message) == "\x00quit\n" {
			say(ws, success)
			goodbye(ws)
		}
		hear(ws)
	}, v4), func(t *testing.T, pods pods) {
		err := stream.Exec(t.Context(), pods, "web-0", &stream.ExecOptions{Command: []string{"cat"}, Stdin: strings.NewReader("text")})
		require.ErrorContains(t, err, "v4.channel.k8s.io only, as Kubernetes before 1.30, and cannot tell a command that its input has ended")

		cmd := stream.Command(t.Context(), pods, "web-0", "bc")
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = io.WriteString(stdin, "quit\n")
		require.NoError(t, err)
		require.NoError(t, cmd.Wait())
	})
}

func TestARefusalIsTheServersOwn(t *testing.T) {
	const missing = `pods "web-0" is forbidden: User "bob" cannot create resource "pods/exec" in API group "" in the namespace "shop"`
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		check  func(t *testing.T, err error)
	}{
		"not found": {
			func(w http.ResponseWriter, _ *http.Request) { refuse(w, 404, "NotFound", `pods "web-0" not found`) },
			func(t *testing.T, err error) {
				require.True(t, apierrors.IsNotFound(err), "%v", err)
				assert.EqualError(t, err, `exec in pod "web-0": pods "web-0" not found`)
			},
		},
		"no RBAC rule": {
			func(w http.ResponseWriter, _ *http.Request) { refuse(w, 403, "Forbidden", missing) },
			func(t *testing.T, err error) {
				require.True(t, apierrors.IsForbidden(err), "%v", err)
				assert.ErrorContains(t, err, missing)
				assert.ErrorContains(t, err, `{apiGroups: [""], resources: ["pods/exec"], verbs: ["get", "create"]}`)
			},
		},
		"forbidden for another reason": {
			func(w http.ResponseWriter, _ *http.Request) { refuse(w, 403, "Forbidden", "the pod is privileged") },
			func(t *testing.T, err error) {
				require.True(t, apierrors.IsForbidden(err), "%v", err)
				assert.NotContains(t, err.Error(), "apiGroups")
			},
		},
		"at length": {
			func(w http.ResponseWriter, _ *http.Request) {
				refuse(w, 422, "Invalid", strings.Repeat("much is wrong, ", 500)+"and this")
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
				assert.ErrorContains(t, err, "asked for v5.channel.k8s.io or v4.channel.k8s.io")
				assert.ErrorContains(t, err, "a proxy or a login page")
			},
		},
		"without an upgrade": {
			func(http.ResponseWriter, *http.Request) {},
			func(t *testing.T, err error) { assert.ErrorIs(t, err, websocket.ErrBadHandshake) },
		},
		"with another protocol": {
			upgrading(t, func(ws *websocket.Conn, _ *http.Request) { hear(ws) }),
			func(t *testing.T, err error) { assert.ErrorContains(t, err, "the server speaks none of the protocols") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, c.answer, func(t *testing.T, pods pods) { c.check(t, execLs(t, pods)) })
		})
	}
}

func TestOfSeveralContainersTheAnnotatedOrTheFirstIsChosen(t *testing.T) {
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
				refuse(w, 400, "BadRequest", "a container name must be specified for pod web-0, choose one of: [init web proxy]")
			default:
				upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
					say(ws, success)
					goodbye(ws)
				}, v5)(w, r)
			}
		}, func(t *testing.T, pods pods) {
			require.NoError(t, execLs(t, pods))
			const path = "/api/v1/namespaces/shop/pods/web-0"
			assert.Equal(t, []string{path + "/exec ", path + " ", path + "/exec " + want}, asked)
		})
	}
}

func TestAContainerThatCannotBeChosenIsAnErrorWithBothReasons(t *testing.T) {
	for name, answer := range map[string]struct{ body, want string }{
		"no containers": {`{"spec": {}}`, "the pod has no containers"},
		"no JSON":       {`<html>`, "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "exec") {
					refuse(w, 400, "BadRequest", "a container name must be specified for pod web-0")
					return
				}
				_, _ = io.WriteString(w, answer.body)
			}, func(t *testing.T, pods pods) {
				err := execLs(t, pods)
				require.ErrorContains(t, err, "a container name must be specified")
				require.ErrorContains(t, err, answer.want)
			})
		})
	}
}

func TestAttachTakesPartInTheMainProcess(t *testing.T) {
	serving(t, upgrading(t, func(ws *websocket.Conn, r *http.Request) {
		assert.Equal(t, "/api/v1/namespaces/shop/pods/web-0/attach", r.URL.Path)
		assert.Equal(t, "container=web&stdin=true&stdout=true&tty=true", r.URL.Query().Encode())
		say(ws, "\x01"+strings.Join(hear(ws), "|"), exit3)
		goodbye(ws)
	}, v5), func(t *testing.T, pods pods) {
		var stdout strings.Builder
		sizes := make(chan stream.Size)
		close(sizes)
		err := stream.Attach(t.Context(), pods, "web-0", &stream.AttachOptions{
			Container: "web", Stdin: strings.NewReader("hi"), Stdout: &stdout, Stderr: io.Discard, TTY: true, Resize: sizes,
		})
		var exited *stream.ExitError
		require.ErrorAs(t, err, &exited)
		assert.Equal(t, "\x00hi|\xff\x00", stdout.String())
	})
}
