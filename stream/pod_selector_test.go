package stream_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/transport"
)

// collection is a handle on objects of a path.
type collection struct {
	path string
	conn *transport.Conn
}

func (c collection) Path(name string) (string, error) {
	return strings.TrimSuffix(c.path+"/"+name, "/"), nil
}

func (c collection) Conn() *transport.Conn { return c.conn }

const (
	deployments  = "/apis/apps/v1/namespaces/shop/deployments"
	statefulSets = "/apis/apps/v1/namespaces/shop/statefulsets"
	jobs         = "/apis/batch/v1/namespaces/shop/jobs"
	services     = "/api/v1/namespaces/shop/services"
)

// workloadServer serves objects named web that select the pods of a logNode, and commands that print their path.
func workloadServer(t *testing.T, n *logNode, podItems string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == services+"/web":
			_, _ = io.WriteString(w, `{"spec":{"selector":{"app":"web"}}}`)
		case path == deployments+"/web" || path == statefulSets+"/web" || path == jobs+"/web":
			_, _ = io.WriteString(w, `{"spec":{"selector":{"matchLabels":{"app":"web"}}}}`)
		case strings.HasSuffix(path, "/configmaps/web"):
			_, _ = io.WriteString(w, `{"data":{}}`)
		case strings.HasPrefix(path, "/apis/"):
			reject(w, 404, "NotFound", "no such object")
		case strings.HasSuffix(path, "/exec") || strings.HasSuffix(path, "/attach"):
			upgrading(t, func(ws *websocket.Conn, _ *http.Request) {
				send(ws, "\x01"+path, success)
				closeNormally(ws)
			}, v5)(w, r)
		case podItems != "" && strings.HasSuffix(path, "/pods") && r.FormValue("labelSelector") == "app=web":
			_, _ = io.WriteString(w, `{"items":[`+podItems+`]}`)
		default:
			n.ServeHTTP(w, r)
		}
	}
}

func podItem(name, phase string, ready bool) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"status":{"phase":%q,"conditions":[{"type":"Ready","status":%q}]}}`,
		name, phase, map[bool]string{true: "True", false: "False"}[ready])
}

func TestExec_WorkloadChoosesPod(t *testing.T) {
	const prefix = "/api/v1/namespaces/shop/pods/"
	for name, c := range map[string]struct{ items, want, err string }{
		"the ready one":    {podItem("web-0", "Running", false) + "," + podItem("web-1", "Running", true), prefix + "web-1/exec", ""},
		"a running one":    {podItem("web-0", "Succeeded", false) + "," + podItem("web-1", "Running", false), prefix + "web-1/exec", ""},
		"none that runs":   {podItem("web-0", "Pending", false), "", "no pod of %s/web is running: 1 Pending"},
		"none that is one": {" ", "", "%s/web has no pods (app=web)"},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, workloadServer(t, &logNode{}, c.items), func(t *testing.T, p pods) {
				for _, path := range []string{deployments, statefulSets, jobs, services} {
					target := collection{path, p.conn}
					resource := path[strings.LastIndexByte(path, '/')+1:]
					out, err := stream.Command(t.Context(), target, "web", "ls").Output()
					assert.Equal(t, c.want, string(out))
					if c.err == "" {
						require.NoError(t, err)
						continue
					}
					require.EqualError(t, err, "exec in "+resource+"/web: "+fmt.Sprintf(c.err, resource))
				}
			})
		})
	}
}

func TestExec_ObjectWithoutPods(t *testing.T) {
	serving(t, workloadServer(t, &logNode{}, ""), func(t *testing.T, p pods) {
		for _, err := range []error{
			stream.Exec(t.Context(), collection{"/api/v1/namespaces/shop/configmaps", p.conn}, "web", &stream.ExecOptions{Command: ls}),
			stream.Attach(t.Context(), collection{"/api/v1/namespaces/shop/configmaps", p.conn}, "web", nil),
		} {
			require.ErrorContains(t, err, "configmaps/web selects no pods (it has no spec.selector): name a pod")
		}
		err := stream.Exec(t.Context(), collection{deployments, p.conn}, "none", &stream.ExecOptions{Command: ls})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.EqualError(t, err, "exec in deployments/none: no such object")
	})
}

func TestLogs_Workload(t *testing.T) {
	n := &logNode{}
	n.write(n.add("web-1", "app"), epoch, "text")
	items := podItem("web-0", "Pending", false) + "," + podItem("web-1", "Failed", false)
	serving(t, workloadServer(t, n, items), func(t *testing.T, p pods) {
		for _, follow := range []bool{false, true} {
			log, err := stream.Logs(t.Context(), collection{deployments, p.conn}, "web", &stream.LogOptions{Follow: follow, Container: "app"})
			require.NoError(t, err)
			text := make([]byte, 200)
			count, err := log.Read(text)
			require.NoError(t, err)
			assert.True(t, strings.HasSuffix(string(text[:count]), "text\n"))
			require.NoError(t, log.Close())
		}
		_, err := stream.Logs(t.Context(), collection{deployments, p.conn}, "none", nil)
		require.EqualError(t, err, "read the log of deployments/none: no such object")
	})
}

// linesOf reads LogLines to its end or to a line "the end".
func linesOf(t *testing.T, target stream.Target, opts *stream.LogOptions) (lines []string, err error) {
	t.Helper()
	for line, err := range stream.LogLines(t.Context(), target, opts) {
		if err != nil {
			return lines, err
		}
		if line.Text == "the end" {
			break
		}
		lines = append(lines, short(line))
	}
	return lines, nil
}

func TestLogLines_Workload(t *testing.T) {
	n := &logNode{}
	n.write(n.add("web-0", "app"), epoch, "one")
	n.write(n.add("web-1", "app"), epoch, "two")
	serving(t, workloadServer(t, n, ""), func(t *testing.T, p pods) {
		for _, path := range []string{deployments, statefulSets, jobs, services} {
			lines, err := linesOf(t, collection{path, p.conn}, &stream.LogOptions{Name: "web", Selector: "tier=front"})
			require.NoError(t, err)
			assert.Equal(t, []string{"web-0/app: one", "web-1/app: two"}, lines)
			assert.Contains(t, n.requests, "/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb%2Ctier%3Dfront&limit=500")
		}
		_, err := linesOf(t, collection{deployments, p.conn}, nil)
		require.EqualError(t, err, "read logs: a handle on deployments does not select pods: set LogOptions.Name to an object with pods")

		_, err = linesOf(t, p, &stream.LogOptions{Name: "web-0"})
		require.NoError(t, err)
		assert.Contains(t, n.requests, "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dweb-0&limit=500")

		time.AfterFunc(time.Second, func() { n.write(n.add("web-2", "app"), time.Now(), "the end") })
		lines, err := linesOf(t, collection{deployments, p.conn}, &stream.LogOptions{Name: "web", Follow: true})
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{"web-0/app: one", "web-1/app: two"}, lines)
	})
}

func TestLogLines_ForbiddenPodKeepsOthers(t *testing.T) {
	for _, follow := range []bool{false, true} {
		n := &logNode{}
		n.write(n.add("web-0", "app"), epoch, "secret")
		open := n.add("web-1", "app")
		n.write(open, epoch, "open")
		n.reject = func(w http.ResponseWriter, r *http.Request) bool {
			forbidden := strings.HasSuffix(r.URL.Path, "/web-0/log")
			if forbidden {
				reject(w, 403, "Forbidden", "not yours")
			}
			return forbidden
		}
		serving(t, n.ServeHTTP, func(t *testing.T, p pods) {
			const want = `pod "web-0", container "app": not yours`
			var reported []string
			opts := &stream.LogOptions{Follow: follow, OnError: func(from stream.LogSource, err error) {
				assert.Equal(t, "web-0", from.Pod)
				reported = append(reported, err.Error())
				if follow {
					time.AfterFunc(time.Second, func() { n.write(open, time.Now(), "the end") })
				}
			}}
			lines, err := linesOf(t, p, opts)
			require.NoError(t, err)
			assert.Equal(t, []string{"web-1/app: open"}, lines)
			assert.Equal(t, []string{want}, reported)
			if follow {
				return
			}
			opts.OnError = nil
			lines, err = linesOf(t, p, opts)
			assert.Equal(t, []string{"web-1/app: open"}, lines)
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			require.EqualError(t, err, "read logs: "+want)
		})
	}
}

func TestLogLines_UnknownContainerOrPod(t *testing.T) {
	n := &logNode{}
	n.add("web-0", "app")
	n.add("web-0", "side")
	serving(t, n.ServeHTTP, func(t *testing.T, p pods) {
		for _, follow := range []bool{false, true} {
			_, err := linesOf(t, p, &stream.LogOptions{Container: "ap", Follow: follow})
			require.EqualError(t, err, `read logs: no pod has a container "ap", but ["app" "side"]`)
		}
	})
	serving(t, (&logNode{}).ServeHTTP, func(t *testing.T, p pods) {
		lines, err := linesOf(t, p, &stream.LogOptions{Container: "app"})
		require.NoError(t, err)
		assert.Empty(t, lines)
		_, err = linesOf(t, p, &stream.LogOptions{Name: "web-0"})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	})
}
