package stream_test

import (
	"bufio"
	"context"
	"io"
	"math/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/stream"
)

func TestLogs_Request(t *testing.T) {
	none := int64(0)
	for want, opts := range map[string]*stream.LogOptions{
		"": nil,
		"container=web&limitBytes=9&previous=true&sinceSeconds=60&stream=Stderr&tailLines=0&timestamps=true": {
			Container: "web", Previous: true, SinceSeconds: 60, TailLines: &none, LimitBytes: 9, Timestamps: true, Stream: "Stderr",
		},
		"insecureSkipTLSVerifyBackend=true&sinceTime=2026-01-02T03%3A04%3A05Z": {
			InsecureSkipTLSVerifyBackend: true, SinceTime: time.Date(2026, 1, 2, 4, 4, 5, 6, time.FixedZone("", 3600)),
		},
	} {
		serving(t, func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, "/api/v1/namespaces/shop/pods/web-0/log", r.URL.Path)
			assert.Equal(t, want, r.URL.RawQuery)
			_, _ = io.WriteString(w, "text")
		}, func(t *testing.T, pods pods) {
			log, err := stream.Logs(t.Context(), pods, "web-0", opts)
			require.NoError(t, err)
			text, err := io.ReadAll(log)
			require.NoError(t, err)
			assert.Equal(t, "text", string(text))
			require.NoError(t, log.Close())
		})
	}
}

func TestLogs_CutOff(t *testing.T) {
	serving(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}, func(t *testing.T, pods pods) {
		log, err := stream.Logs(t.Context(), pods, "web-0", nil)
		require.NoError(t, err)
		_, err = io.ReadAll(log)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.NoError(t, log.Close())
	})
}

// epoch is the initial time in a bubble.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// follow reads the log of the container app of web-0 to its end, while act goes on, and gives what was read.
func follow(t *testing.T, n *logNode, opts stream.LogOptions, act func()) (text string, err error) {
	opts.Container = "app"
	opts.Follow = true
	serving(t, n.ServeHTTP, func(t *testing.T, pods pods) {
		log, openErr := stream.Logs(t.Context(), pods, "web-0", &opts)
		require.NoError(t, openErr)
		done := make(chan struct{})
		go func() {
			defer close(done)
			act()
		}()
		var read []byte
		read, err = io.ReadAll(log)
		text = string(read)
		<-done
		require.NoError(t, log.Close())
	})
	return text, err
}

func TestLogs_FollowReturnsLinesOnce(t *testing.T) {
	for seed := range int64(20) {
		random := rand.New(rand.NewSource(seed))
		n := &logNode{}
		app := n.add("web-0", "app")
		cuts := rand.New(rand.NewSource(seed))
		n.breaks = func() (int, bool) {
			n.mu.Lock()
			defer n.mu.Unlock()
			if !app.running {
				return 0, true
			}
			return 1 + cuts.Intn(300_000), cuts.Intn(2) == 0
		}
		var texts []string
		text, err := follow(t, n, stream.LogOptions{}, func() {
			texts = chatter(t, n, app, random, 60)
			n.change("web-0", func(*logPod) { app.running = false })
		})
		require.NoError(t, err)
		require.Equal(t, strings.Join(texts, "\n")+"\n", text, "seed %d", seed)
		require.Greater(t, len(n.requests), 3)
	}
}

func TestLogs_FollowAcrossRotation(t *testing.T) {
	n := &logNode{}
	app := n.add("web-0", "app")
	text, err := follow(t, n, stream.LogOptions{}, func() {
		for i := range 6 {
			n.write(app, time.Now(), string(rune('a'+i)))
			time.Sleep(300 * time.Millisecond)
			if i%2 == 1 {
				n.change("web-0", func(*logPod) { app.lines = nil })
				time.Sleep(20 * time.Millisecond)
			}
		}
		n.change("web-0", func(*logPod) { app.running = false })
	})
	require.NoError(t, err)
	assert.Equal(t, "a\nb\nc\nd\ne\nf\n", text)
}

func TestLogs_OptionsHoldAfterReconnect(t *testing.T) {
	one := int64(1)
	for name, c := range map[string]struct {
		opts stream.LogOptions
		want string
	}{
		"the last line":        {stream.LogOptions{TailLines: &one}, "third\nfourth\nfifth\n"},
		"no line":              {stream.LogOptions{TailLines: new(int64)}, "fourth\nfifth\n"},
		"the last seconds":     {stream.LogOptions{SinceSeconds: 3600}, "first\nsecond\nthird\nfourth\nfifth\n"},
		"so many bytes":        {stream.LogOptions{LimitBytes: 15}, "first\nsecond\nth"},
		"with times":           {stream.LogOptions{Timestamps: true, TailLines: &one}, "2000-01-01T00:00:02.000000000Z third\n2000-01-01T00:00:08.000000000Z fourth\n2000-01-01T00:00:09.000000000Z fifth\n"},
		"with times, in bytes": {stream.LogOptions{Timestamps: true, LimitBytes: 33}, "2000-01-01T00:00:02.000000000Z fi"},
	} {
		t.Run(name, func(t *testing.T) {
			n := &logNode{}
			app := n.add("web-0", "app")
			start := time.Date(2000, 1, 1, 0, 0, 2, 0, time.UTC)
			for _, text := range []string{"first", "second", "third"} {
				n.write(app, start, text)
			}
			n.breaks = func() (int, bool) { return 0, true }
			text, err := follow(t, n, c.opts, func() {
				time.Sleep(8 * time.Second)
				n.change("web-0", func(p *logPod) { p.containers["other"] = app })
				n.write(app, time.Now(), "fourth")
				n.mu.Lock()
				n.breaks = func() (int, bool) { return 1, false }
				n.mu.Unlock()
				time.Sleep(time.Second)
				n.write(app, time.Now(), "fifth")
				time.Sleep(time.Second)
				n.breaks = nil
				n.change("web-0", func(*logPod) { app.running = false })
			})
			require.NoError(t, err)
			assert.Equal(t, c.want, text)
		})
	}
}

func TestLogs_FollowEndsWithContainer(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*logPod)
		want string
		lost bool
	}{
		"that ended":                        {func(p *logPod) { p.containers["app"].running = false }, "before\nlast\n", false},
		"that was restarted":                {func(p *logPod) { p.containers["app"].restart() }, "before\nlast\n", false},
		"that was restarted more than once": {func(p *logPod) { p.containers["app"].restart(); p.containers["app"].restart() }, "before\n", true},
		"whose pod was deleted":             {func(p *logPod) { p.deleted = true }, "before\n", true},
		"whose pod was replaced":            {func(p *logPod) { p.uid = "another" }, "before\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			n := &logNode{}
			app := n.add("web-0", "app")
			n.write(app, epoch, "before")
			connections := 0
			n.breaks = func() (int, bool) {
				connections++
				if connections == 1 {
					return len(stampFormat) + len(" before\n"), false
				}
				return 0, true
			}
			text, err := follow(t, n, stream.LogOptions{}, func() {
				time.Sleep(time.Second)
				n.write(app, time.Now(), "last") // breaks the connection
				time.Sleep(20 * time.Millisecond)
				n.change("web-0", c.end)
			})
			assert.Equal(t, c.want, text)
			if !c.lost {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.ErrorContains(t, err, "later lines are lost")
		})
	}
}

func TestLogs_FollowWaitsForServer(t *testing.T) {
	n := &logNode{}
	app := n.add("web-0", "app")
	n.write(app, epoch, "before")
	away := false
	n.reject = func(w http.ResponseWriter, _ *http.Request) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		if away {
			reject(w, 503, "ServiceUnavailable", "starting")
		}
		return away
	}
	n.breaks = func() (int, bool) { return 200, false }
	text, err := follow(t, n, stream.LogOptions{}, func() {
		time.Sleep(time.Second)
		n.change("web-0", func(*logPod) { away = true })
		for range 10 {
			n.write(app, time.Now(), strings.Repeat("x", 30))
			time.Sleep(time.Minute)
		}
		n.change("web-0", func(*logPod) {
			away = false
			n.breaks = nil
		})
		n.write(app, time.Now(), "after")
		time.Sleep(time.Minute)
		n.change("web-0", func(*logPod) { app.running = false })
	})
	require.NoError(t, err)
	assert.Equal(t, "before\n"+strings.Repeat(strings.Repeat("x", 30)+"\n", 10)+"after\n", text)
}

func TestLogs_FollowWithoutPodPermission(t *testing.T) {
	n := &logNode{}
	app := n.add("web-0", "app")
	n.write(app, epoch, "text")
	n.reject = func(w http.ResponseWriter, r *http.Request) bool {
		forbidden := !strings.HasSuffix(r.URL.Path, "/log")
		if forbidden {
			reject(w, 403, "Forbidden", "no")
		}
		return forbidden
	}
	text, err := follow(t, n, stream.LogOptions{}, func() {
		time.Sleep(time.Second)
		n.change("web-0", func(*logPod) { app.running = false })
	})
	require.NoError(t, err)
	assert.Equal(t, "text\n", text)
}

func TestLogs_CloseEndsRead(t *testing.T) {
	n := &logNode{}
	n.add("web-0", "app")
	serving(t, n.ServeHTTP, func(t *testing.T, pods pods) {
		log, err := stream.Logs(t.Context(), pods, "web-0", &stream.LogOptions{Follow: true})
		require.NoError(t, err)
		time.AfterFunc(time.Minute, func() { _ = log.Close() })
		_, err = io.ReadAll(log)
		require.ErrorIs(t, err, context.Canceled)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		log, err = stream.Logs(ctx, pods, "web-0", &stream.LogOptions{Follow: true})
		require.NoError(t, err)
		_, err = bufio.NewReader(log).ReadString('\n')
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, log.Close())

		log, err = stream.Logs(t.Context(), pods, "web-0", &stream.LogOptions{Follow: true})
		require.NoError(t, err)
		require.NoError(t, log.Close()) // unread
	})
}

func TestLogs_OpenErrors(t *testing.T) {
	serving(t, func(w http.ResponseWriter, _ *http.Request) { reject(w, 404, "NotFound", "no such pod") }, func(t *testing.T, pods pods) {
		for _, opts := range []*stream.LogOptions{nil, {Follow: true}} {
			_, err := stream.Logs(t.Context(), pods, "web-0", opts)
			require.True(t, apierrors.IsNotFound(err), "%v", err)
			require.EqualError(t, err, `read the log of pod "web-0": no such pod`)
		}
		_, err := stream.Logs(t.Context(), pods, "web-0", &stream.LogOptions{Selector: "a=b"})
		require.ErrorContains(t, err, "use LogLines")
	})
}
