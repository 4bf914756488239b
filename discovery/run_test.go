package discovery

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/scripted"
)

const (
	aggregatedType  = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	emptyMetadata   = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[]}`
	expiredEvent    = `{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410,"reason":"Expired"}}`
	widgetsModified = `{"type":"MODIFIED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"widgets.shop","resourceVersion":"6"}}}`
)

// scriptedServer serves the requests of Client.Run; a test replaces answers by path, "watch" for the watches of definitions.
type scriptedServer struct {
	mu       sync.Mutex
	replaced map[string]http.HandlerFunc
	requests map[string][]time.Duration // since began
	began    time.Time
}

func newScriptedServer() *scriptedServer {
	return &scriptedServer{replaced: map[string]http.HandlerFunc{}, requests: map[string][]time.Duration{}, began: time.Now()}
}

func (s *scriptedServer) replace(path string, handle http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replaced[path] = handle
}

func (s *scriptedServer) asked(path string) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Duration(nil), s.requests[path]...)
}

func (s *scriptedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	watching := r.URL.Query().Get("watch") != ""
	if watching && path == definitionsPath {
		path = "watch"
	}
	s.mu.Lock()
	s.requests[path] = append(s.requests[path], time.Since(s.began))
	replaced := s.replaced[path]
	every := s.replaced["*"]
	s.mu.Unlock()
	switch {
	case every != nil:
		every(w, r)
	case replaced != nil:
		replaced(w, r)
	case watching:
		scripted.Watch()(w, r)
	case path == watchedSources[0], path == watchedSources[1]:
		scripted.JSON(emptyMetadata)(w, r)
	case path == "/api":
		answerAggregated("/v1 pods")(w, r)
	case path == "/apis":
		answerAggregated("apps/v1 deployments")(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func answerAggregated(groups string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", aggregatedType)
		_, _ = io.WriteString(w, aggregated(groups))
	}
}

// startRun runs Live until stop is called, which returns its error. ended is closed when it has ended.
func startRun(t *testing.T, server http.Handler) (client *Client, ended chan struct{}, stop func() error) {
	t.Helper()
	client = New(scripted.Connect(t, server, nil), nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended = make(chan struct{})
	var err error
	go func() { defer close(ended); err = client.Run(ctx) }()
	stop = func() error { cancel(io.ErrClosedPipe); <-ended; return err }
	t.Cleanup(func() { _ = stop() })
	return client, ended, stop
}

func TestRun_EndsWithContextErrorAndCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, stop := startRun(t, newScriptedServer())
		synctest.Wait()
		err := stop()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, io.ErrClosedPipe)

		server := newScriptedServer()
		server.replace("*", scripted.Status(http.StatusServiceUnavailable, "ServiceUnavailable"))
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, io.ErrNoProgress)
		defer cancel()
		err = New(scripted.Connect(t, server, nil), nil).Run(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, io.ErrNoProgress)
	})
}

func TestRun_SurvivesDenialsOfRestart(t *testing.T) {
	for _, code := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusServiceUnavailable} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newScriptedServer()
				broken := make(chan struct{})
				server.replace("watch", func(w http.ResponseWriter, r *http.Request) {
					w.(http.Flusher).Flush()
					select {
					case <-broken:
						panic(http.ErrAbortHandler)
					case <-r.Context().Done():
					}
				})
				_, _, stop := startRun(t, server)
				time.Sleep(40 * time.Second)
				server.replace("*", scripted.Status(code, ""))
				close(broken)
				time.Sleep(2 * time.Second)
				server.replace("watch", scripted.Watch(widgetsModified))
				server.replace("*", nil)
				time.Sleep(10 * time.Second)
				assert.NotEmpty(t, server.asked("/apis/shop"), "it follows definitions again")
				require.ErrorIs(t, stop(), context.Canceled)
			})
		})
	}
}

func TestRun_RepeatsFirstRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newScriptedServer()
		server.replace("/apis", scripted.Status(http.StatusServiceUnavailable, "ServiceUnavailable"))
		client, _, _ := startRun(t, server)
		time.Sleep(20 * time.Second)
		assert.Nil(t, client.Latest())
		assert.Empty(t, server.asked(watchedSources[1]), "nothing is watched before there is a snapshot")
		server.replace("/apis", nil)
		time.Sleep(20 * time.Second)
		assert.NotNil(t, client.Latest())
		assert.NotEmpty(t, server.asked("watch"))
	})
}

func groupsByName(s *Snapshot) map[string]Group {
	groups := map[string]Group{}
	for _, group := range s.Groups {
		groups[group.Name] = group
	}
	return groups
}

func TestRun_ReportsDenialsThatStay(t *testing.T) {
	for _, c := range []struct {
		name, path string
		after      time.Duration // at most
	}{
		{"list", watchedSources[1], 15 * time.Second},
		{"watch", "watch", 15 * time.Second},
		{"discovery", "/apis", 15 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newScriptedServer()
				server.replace(c.path, scripted.Status(http.StatusForbidden, "Forbidden"))
				_, ended, stop := startRun(t, server)
				<-ended
				assert.True(t, apierrors.IsForbidden(stop()), "%v", stop())
				assert.LessOrEqual(t, time.Since(server.began), c.after)
				assert.Greater(t, time.Since(server.began), 5*time.Second, "a starting server denies allGroups for a moment")
			})
		})
	}
}

func TestRun_ReportsDiscoveryDeniedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newScriptedServer()
		_, ended, stop := startRun(t, server)
		time.Sleep(time.Minute)
		server.replace("/apis", scripted.Status(http.StatusForbidden, "Forbidden"))
		<-ended
		assert.True(t, apierrors.IsForbidden(stop()))
		assert.Less(t, time.Since(server.began), 2*time.Minute)
	})
}

func TestRun_ReportsDenialDuringHangingRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newScriptedServer()
		server.replace("/apis/shop", scripted.Watch())
		server.replace("watch", func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			time.Sleep(time.Minute)
			server.replace("/apis", scripted.Status(http.StatusForbidden, "Forbidden"))
			scripted.Watch(widgetsModified)(w, r)
		})
		_, ended, stop := startRun(t, server)
		select {
		case <-ended:
		case <-time.After(2 * time.Minute):
		}
		assert.NotEmpty(t, server.asked("/apis/shop"))
		assert.True(t, apierrors.IsForbidden(stop()), "it waits for the request that hangs")
	})
}

func TestRun_SurvivesSingleDenialsOfDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newScriptedServer()
		deny := []time.Duration{60 * time.Second, 85 * time.Second}
		denied := atomic.Int32{}
		server.replace("/apis", func(w http.ResponseWriter, r *http.Request) {
			if next := int(denied.Load()); next < len(deny) && time.Since(server.began) >= deny[next] {
				denied.Add(1)
				scripted.Status(http.StatusForbidden, "Forbidden")(w, r)
				return
			}
			answerAggregated("apps/v1 deployments")(w, r)
		})
		_, _, stop := startRun(t, server)
		time.Sleep(3 * time.Minute)
		assert.EqualValues(t, len(deny), denied.Load())
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

func TestRun_WatchesAgainAfterNotFoundDuringRelist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newScriptedServer()
		var lists atomic.Int32
		server.replace("watch", scripted.Watch(expiredEvent))
		server.replace(definitionsPath, func(w http.ResponseWriter, r *http.Request) {
			if lists.Add(1) == 2 {
				w.WriteHeader(http.StatusNotFound)
				server.replace("watch", scripted.Watch())
				return
			}
			scripted.JSON(emptyMetadata)(w, r)
		})
		_, _, stop := startRun(t, server)
		time.Sleep(time.Minute)
		assert.EqualValues(t, 3, lists.Load())
		assert.Len(t, server.asked("watch"), 2)
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

func TestRun_WatchesSourcesThatAppear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newScriptedServer()
		server.replace(definitionsPath, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
		startRun(t, server)
		time.Sleep(time.Minute)
		assert.Empty(t, server.asked("watch"))
		assert.Less(t, len(server.asked(definitionsPath)), 15)
		server.replace(definitionsPath, nil)
		time.Sleep(time.Minute)
		assert.Len(t, server.asked("watch"), 1)
	})
}

func TestRun_RefreshesAllDespiteBusyDefinitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newScriptedServer()
		server.replace("watch", func(w http.ResponseWriter, r *http.Request) {
			for i := 6; r.Context().Err() == nil; i++ {
				_, _ = fmt.Fprintln(w, strings.Replace(widgetsModified, `"6"`, fmt.Sprintf(`"%d"`, i), 1))
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(4 * time.Second):
				}
			}
		})
		startRun(t, server)
		time.Sleep(10 * time.Minute)
		var last time.Duration
		for _, at := range server.asked("/apis") {
			assert.LessOrEqual(t, at-last, 40*time.Second)
			last = at
		}
		assert.Greater(t, last, 9*time.Minute)
	})
}

func TestRun_EndsHangingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newScriptedServer()
		client, _, stop := startRun(t, server)
		time.Sleep(time.Second)
		server.replace("/apis", scripted.Watch()) // as a connection that is dead unnoticed
		time.Sleep(2 * time.Minute)
		server.replace("/apis", answerAggregated("apps/v1 deployments,batch/v1 jobs"))
		time.Sleep(2 * time.Minute)
		assert.Contains(t, groupsByName(client.Latest()), "batch")
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

func TestRun_EndedWatchesAreRepeatedWithDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, handle := range map[string]http.HandlerFunc{
			"ended":       func(http.ResponseWriter, *http.Request) {},
			"expired":     scripted.Watch(expiredEvent),
			"aborted":     func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"garbage":     scripted.Watch("<html>"),
			"no version":  scripted.Watch(`{"type":"MODIFIED","object":{}}`),
			"failed":      scripted.Watch(`{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd"}}`),
			"bad request": scripted.Watch(`{"type":"ERROR","object":{"kind":"Status","code":400,"message":"odd"}}`),
		} {
			server := newScriptedServer()
			server.replace("watch", handle)
			_, _, stop := startRun(t, server)
			time.Sleep(time.Minute)
			watches := len(server.asked("watch"))
			assert.Less(t, watches, 60, name) // transport repeats what was aborted three times
			assert.Greater(t, watches, 4, name)
			require.ErrorIs(t, stop(), context.Canceled, name)
		}
	})
}
