package stream_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/stream"
)

// recordEvents makes the callbacks and the loop append what they get to one slice, without a lock: they share a goroutine.
func recordEvents(t *testing.T, p pods, opts stream.LogOptions, last string) (events []string) {
	t.Helper()
	name := func(s stream.LogSource) string { return fmt.Sprintf("%s/%s %d", s.Pod, s.Container, s.Restarts) }
	opts.OnStart = func(s stream.LogSource) { events = append(events, "start "+name(s)) }
	opts.OnEnd = func(s stream.LogSource, reason string) { events = append(events, "end "+name(s)+" "+reason) }
	opts.OnError = func(s stream.LogSource, err error) { events = append(events, "error "+name(s)+" "+err.Error()) }
	for line, err := range stream.LogLines(t.Context(), p, &opts) {
		require.NoError(t, err)
		events = append(events, short(line))
		if line.Text == last {
			break
		}
	}
	return events
}

func TestLogLines_CallbacksWithoutFollow(t *testing.T) {
	n := &logNode{}
	n.write(n.add("web-0", "app"), epoch, "one")
	n.write(n.add("web-0", "side"), epoch, "secret")
	n.write(n.add("web-1", "app"), epoch, "gone")
	n.write(n.add("web-2", "app"), epoch, "two")
	n.reject = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Query().Get("container") == "side":
			reject(w, 403, "Forbidden", "not yours")
		case strings.HasSuffix(r.URL.Path, "/web-1/log"):
			n.change("web-1", func(p *logPod) { p.deleted = true })
			reject(w, 404, "NotFound", "no such pod")
		default:
			return false
		}
		return true
	}
	serving(t, n.ServeHTTP, func(t *testing.T, p pods) {
		assert.Equal(t, []string{
			"start web-0/app 0", "web-0/app: one", "end web-0/app 0 Complete",
			"start web-0/side 0", `error web-0/side 0 pod "web-0", container "side": not yours`, "end web-0/side 0 Failed",
			"start web-1/app 0", "end web-1/app 0 PodRemoved",
			"start web-2/app 0", "web-2/app: two", "end web-2/app 0 Complete",
		}, recordEvents(t, p, stream.LogOptions{}, ""))
	})
}

// A 404 of a node does not mean that the pod is gone.
func TestLogLines_StartingNodeWithoutFollow(t *testing.T) {
	for rejections, events := range map[int][]string{ // of the first of two pods
		3: {"start web-0/app 0", "web-0/app: one", "end web-0/app 0 Complete"},
		100: {
			"start web-0/app 0",
			`error web-0/app 0 pod "web-0", container "app": the server could not find the requested resource ( pods/log web-0)`,
			"end web-0/app 0 Failed",
		},
	} {
		t.Run(fmt.Sprint(rejections, " rejections"), func(t *testing.T) {
			n := &logNode{}
			n.write(n.add("web-0", "app"), epoch, "one")
			n.write(n.add("web-1", "app"), epoch, "two")
			count := 0
			n.reject = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/web-0/log") || count == rejections {
					return false
				}
				count++
				rejectOfNode(w)
				return true
			}
			serving(t, n.ServeHTTP, func(t *testing.T, p pods) {
				events = append(events, "start web-1/app 0", "web-1/app: two", "end web-1/app 0 Complete")
				assert.Equal(t, events, recordEvents(t, p, stream.LogOptions{}, ""))
			})
		})
	}
}

func TestLogLines_CallbacksWithFollow(t *testing.T) {
	n := &logNode{}
	app := n.add("web-0", "app")
	n.write(app, epoch, "first run")
	serving(t, n.ServeHTTP, func(t *testing.T, p pods) {
		go func() {
			time.Sleep(time.Second)
			n.change("web-0", func(*logPod) { app.restart() })
			n.write(app, time.Now(), "second run")
			time.Sleep(time.Second)
			other := n.add("web-1", "app")
			time.Sleep(time.Second)
			n.change("web-1", func(*logPod) { other.running = false })
			time.Sleep(time.Second)
			n.change("web-0", func(p *logPod) { p.deleted = true })
			time.Sleep(time.Minute)
			n.write(n.add("web-2", "app"), time.Now(), "the end")
		}()
		assert.Equal(t, []string{
			"start web-0/app 0", "web-0/app: first run", "end web-0/app 0 Complete",
			"start web-0/app 1", "web-0/app: second run",
			"start web-1/app 0", "end web-1/app 0 Complete",
			"end web-0/app 1 PodRemoved",
			"start web-2/app 0", "web-2/app: the end",
		}, recordEvents(t, p, stream.LogOptions{Follow: true}, "the end"))
	})
}

func TestLogLines_ReportsEachFailureWithFollow(t *testing.T) {
	n := &logNode{}
	n.add("web-0", "app")
	n.add("web-1", "app")
	n.reject = func(w http.ResponseWriter, r *http.Request) bool {
		isLog := strings.HasSuffix(r.URL.Path, "/log")
		if isLog {
			reject(w, 403, "Forbidden", "not yours")
		}
		return isLog
	}
	serving(t, n.ServeHTTP, func(t *testing.T, p pods) {
		var failed, ended []string
		opts := &stream.LogOptions{
			Follow: true,
			OnError: func(s stream.LogSource, err error) {
				failed = append(failed, s.Pod)
				assert.True(t, apierrors.IsForbidden(err))
			},
			OnEnd: func(s stream.LogSource, reason string) { ended = append(ended, s.Pod+" "+reason) },
		}
		lines, err := linesOf(t, p, opts)
		assert.Empty(t, lines)
		require.True(t, apierrors.IsForbidden(err), "no log can be read: %v", err)
		assert.ElementsMatch(t, []string{"web-0", "web-1"}, failed)
		assert.ElementsMatch(t, []string{"web-0 Failed", "web-1 Failed"}, ended)
	})
}

// TestLogLines_ReportsLostLines has a pod that is deleted while its log's connection is broken.
func TestLogLines_ReportsLostLines(t *testing.T) {
	n := &logNode{}
	app := n.add("web-0", "app")
	n.write(app, epoch, "before")
	n.breaks = func() (int, bool) { return len(stampFormat) + len(" before\n"), false }
	serving(t, n.ServeHTTP, func(t *testing.T, p pods) {
		go func() {
			time.Sleep(time.Second)
			n.write(app, time.Now(), "last") // breaks the connection
			n.change("web-0", func(p *logPod) { p.deleted = true })
			n.mu.Lock()
			n.breaks = nil
			n.mu.Unlock()
			time.Sleep(time.Minute)
			n.write(n.add("web-1", "app"), time.Now(), "the end")
		}()
		events := recordEvents(t, p, stream.LogOptions{Follow: true}, "the end")
		require.Len(t, events, 6)
		assert.Contains(t, events[2], "error web-0/app 0")
		assert.Contains(t, events[2], "later lines are lost")
		assert.Equal(t, "end web-0/app 0 Failed", events[3])
	})
}

func TestLogLines_Filter(t *testing.T) {
	for _, follow := range []bool{false, true} {
		n := &logNode{}
		n.write(n.add("web-0", "app"), epoch, "one")
		n.write(n.add("web-0", "side"), epoch, "two")
		other := n.add("web-1", "app")
		n.write(other, epoch, "three")
		n.write(other, epoch, "the end")
		serving(t, n.ServeHTTP, func(t *testing.T, p pods) {
			var asked []stream.LogSource
			opts := &stream.LogOptions{Follow: follow, Filter: func(s stream.LogSource) bool {
				asked = append(asked, s)
				return s.Container == "app" && s.Pod == "web-1"
			}}
			lines, err := linesOf(t, p, opts)
			require.NoError(t, err)
			assert.Equal(t, []string{"web-1/app: three"}, lines)
			require.GreaterOrEqual(t, len(asked), 3)
			assert.Equal(t, stream.LogSource{
				Namespace: "shop", Pod: "web-0", Container: "app", Node: "node-0", Labels: map[string]string{"app": "web"}, Field: "containers",
				IsDefault: true,
			}, asked[0])
		})
	}
}

func TestLogLines_FilterAgainAfterChange(t *testing.T) {
	n := &logNode{}
	n.write(n.add("web-0", "app"), epoch, "the end")
	serving(t, n.ServeHTTP, func(t *testing.T, p pods) {
		go func() {
			time.Sleep(time.Second)
			n.change("web-0", func(p *logPod) { p.labels = "app=web,follow=yes" })
		}()
		accepts := func(s stream.LogSource) bool { return s.Labels["follow"] == "yes" }
		events := recordEvents(t, p, stream.LogOptions{Follow: true, Filter: accepts}, "the end")
		assert.Equal(t, []string{"start web-0/app 0", "web-0/app: the end"}, events)
	})
}
