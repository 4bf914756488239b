package stream_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/stream"
)

func short(line stream.LogLine) string { return line.Pod + "/" + line.Container + ": " + line.Text }

func TestLogLines_ReadsInOrder(t *testing.T) {
	n := &logNode{}
	n.write(n.add("web-0", "app"), epoch, "one")
	n.write(n.add("web-0", "side"), epoch.Add(-time.Hour), "two")
	other := n.add("web-1", "app")
	n.write(other, epoch, "three")
	other.lines = append(other.lines, "rpc error: no log\n", epoch.Format(stampFormat)+" no line break")
	for container, want := range map[string][]string{
		"": {
			"web-0/app: one", "web-0/side: two", "web-1/app: three", "web-1/app: rpc error: no log", "web-1/app: no line break",
		},
		"side": {"web-0/side: two"},
	} {
		serving(t, n.ServeHTTP, func(t *testing.T, pods pods) {
			var got []string
			for line, err := range stream.LogLines(t.Context(), pods, &stream.LogOptions{Container: container, Selector: "app=web"}) {
				require.NoError(t, err)
				assert.Equal(t, "shop", line.Namespace)
				assert.Equal(t, strings.HasPrefix(line.Text, "rpc"), line.Time.IsZero())
				got = append(got, short(line))
			}
			assert.Equal(t, want, got)
			assert.Contains(t, n.requests, "/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb&limit=500")
		})
	}
	serving(t, n.ServeHTTP, func(t *testing.T, pods pods) {
		for line, err := range stream.LogLines(t.Context(), pods, nil) {
			require.NoError(t, err)
			assert.Equal(t, "one", line.Text)
			break
		}
	})
}

func TestLogLines_SplitsLongLines(t *testing.T) {
	n := &logNode{}
	n.write(n.add("web-0", "app"), epoch, strings.Repeat("x", 5<<19))
	serving(t, n.ServeHTTP, func(t *testing.T, pods pods) {
		var sizes []int
		for line, err := range stream.LogLines(t.Context(), pods, nil) {
			require.NoError(t, err)
			assert.Equal(t, epoch, line.Time)
			sizes = append(sizes, len(line.Text))
		}
		assert.Len(t, sizes, 3)
		assert.Equal(t, 5<<19, sizes[0]+sizes[1]+sizes[2])
	})
}

// The log of the first container is complete: its last line has no line break.
func TestLogLines_EndedContextBetweenContainers(t *testing.T) {
	n := &logNode{}
	app := n.add("web-0", "app")
	app.lines = append(app.lines, epoch.Format(stampFormat)+" no line break")
	n.write(n.add("web-1", "app"), epoch, "two")
	serving(t, n.ServeHTTP, func(t *testing.T, pods pods) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var last error
		for line, err := range stream.LogLines(ctx, pods, nil) {
			if last = err; err == nil {
				assert.Equal(t, "web-0", line.Pod)
				cancel()
			}
		}
		require.ErrorIs(t, last, context.Canceled)
	})
}

func TestLogLines_LongLineWithoutLineBreak(t *testing.T) {
	s := &logServer{}
	text := strings.Repeat("x", 100<<10)
	s.log = func(_ int64, w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, epoch.Format(stampFormat)+" "+text)
	}
	serving(t, s.ServeHTTP, func(t *testing.T, pods pods) {
		var lines []stream.LogLine
		for line, err := range stream.LogLines(t.Context(), pods, nil) {
			require.NoError(t, err)
			lines = append(lines, line)
		}
		require.Len(t, lines, 1)
		assert.True(t, epoch.Equal(lines[0].Time), "%v", lines[0].Time)
		assert.Len(t, lines[0].Text, len(text))
	})
}

func TestLogLines_FollowAddsPodsAndRestarts(t *testing.T) {
	n := &logNode{}
	app := n.add("web-0", "app")
	n.write(app, epoch.Add(-time.Millisecond), "old")
	n.write(app, epoch, "tail")
	one := int64(1)
	serving(t, n.ServeHTTP, func(t *testing.T, pods pods) {
		act := func() {
			time.Sleep(time.Second)
			n.write(app, time.Now(), "more")
			time.Sleep(time.Second)
			side := n.add("web-0", "side")
			n.write(side, time.Now(), "side 1")
			n.write(side, time.Now(), "side 2")
			time.Sleep(time.Second)
			n.change("web-0", func(p *logPod) { p.containers["app"].restart() })
			n.write(app, time.Now(), "second run")
			time.Sleep(time.Second)
			n.write(n.add("web-1", "app"), time.Now(), "new pod")
			time.Sleep(time.Second)
			n.change("web-0", func(p *logPod) { p.deleted = true })
			time.Sleep(time.Second)
			n.write(n.pods["web-1"].containers["app"], time.Now(), "the end")
		}
		go act()
		var got []string
		for line, err := range stream.LogLines(t.Context(), pods, &stream.LogOptions{Follow: true, TailLines: &one}) {
			require.NoError(t, err)
			got = append(got, short(line))
			if line.Text == "the end" {
				break
			}
		}
		assert.Equal(t, []string{
			"web-0/app: tail", "web-0/app: more", "web-0/side: side 1", "web-0/side: side 2", "web-0/app: second run",
			"web-1/app: new pod", "web-1/app: the end",
		}, got)
	})
}

func TestLogLines_FollowEnds(t *testing.T) {
	n := &logNode{}
	n.add("web-0", "app")
	serving(t, n.ServeHTTP, func(t *testing.T, pods pods) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ends := 0
		for _, err := range stream.LogLines(ctx, pods, &stream.LogOptions{Follow: true}) {
			ends++
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		assert.Equal(t, 1, ends)
	})
	for _, path := range []string{"/log", "/pods"} {
		n.reject = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, path) {
				reject(w, 403, "Forbidden", "no")
				return true
			}
			return false
		}
		serving(t, n.ServeHTTP, func(t *testing.T, pods pods) {
			for _, follow := range []bool{true, false} {
				var last error
				for _, err := range stream.LogLines(t.Context(), pods, &stream.LogOptions{Follow: follow}) {
					require.NoError(t, last)
					last = err
				}
				require.True(t, apierrors.IsForbidden(last), "%v", last)
			}
		})
	}
}

func TestLogLines_WatchesAgain(t *testing.T) {
	n := &logNode{}
	n.add("web-0", "app")
	const expired = `{"type":"ERROR","object":{"status":"Failure","reason":"Expired","code":410}}`
	watches := 0
	n.reject = func(w http.ResponseWriter, r *http.Request) bool {
		if r.FormValue("watch") == "" {
			return false
		}
		watches++
		switch watches {
		case 1:
			reject(w, 410, "Expired", "too old")
		case 2:
			_, _ = io.WriteString(w, expired)
		case 3:
			panic(http.ErrAbortHandler)
		case 4:
			reject(w, 503, "ServiceUnavailable", "starting")
		case 5:
			n.write(n.add("web-1", "app"), time.Now(), "found by listing")
			_, _ = io.WriteString(w, expired)
		default:
			time.Sleep(time.Second)
			_, _ = io.WriteString(w, `{"type":"ERROR","object":{"status":"Failure","reason":"Forbidden","message":"not any more","code":403}}`)
		}
		return true
	}
	serving(t, n.ServeHTTP, func(t *testing.T, pods pods) {
		var got []string
		var last error
		for line, err := range stream.LogLines(t.Context(), pods, &stream.LogOptions{Follow: true}) {
			if last = err; err == nil {
				got = append(got, short(line))
			}
		}
		assert.Equal(t, []string{"web-1/app: found by listing"}, got)
		require.EqualError(t, last, "read logs: not any more")
	})
}

func TestLogLines_WaitsForLog(t *testing.T) {
	n := &logNode{}
	n.write(n.add("web-0", "app"), epoch, "text")
	refusals := 3
	n.reject = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") || refusals == 0 {
			return false
		}
		refusals--
		reject(w, 400, "BadRequest", "container app is waiting to start")
		return true
	}
	serving(t, n.ServeHTTP, func(t *testing.T, pods pods) {
		for line, err := range stream.LogLines(t.Context(), pods, &stream.LogOptions{Follow: true}) {
			require.NoError(t, err)
			assert.Equal(t, "text", line.Text)
			break
		}
		assert.Zero(t, refusals)
	})
}
