package discovery

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

const (
	aggregatedType  = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	expiredEvent    = `{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410,"reason":"Expired"}}`
	widgetsModified = `{"type":"MODIFIED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"widgets.shop","resourceVersion":"6"}}}`
)

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
		_, _, stop := startRun(t, newServer())
		synctest.Wait()
		err := stop()
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, io.ErrClosedPipe)

		server := newServer()
		server.handleAll(scripted.Status(http.StatusServiceUnavailable, "ServiceUnavailable"))
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
				server := newServer()
				broken := make(chan struct{})
				server.Handle("WATCH "+definitionsPath, func(w http.ResponseWriter, r *http.Request) {
					w.(http.Flusher).Flush()
					select {
					case <-broken:
						panic(http.ErrAbortHandler)
					case <-r.Context().Done():
					}
				})
				_, _, stop := startRun(t, server)
				time.Sleep(40 * time.Second)
				server.handleAll(scripted.Status(code, ""))
				close(broken)
				time.Sleep(2 * time.Second)
				server.handleAll(nil)
				server.Handle("WATCH "+definitionsPath, scripted.Watch(widgetsModified))
				time.Sleep(10 * time.Second)
				assert.NotZero(t, server.asked("/apis/shop"), "it follows definitions again")
				require.ErrorIs(t, stop(), context.Canceled)
			})
		})
	}
}

func TestRun_RepeatsFirstRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.Handle("GET /apis", scripted.Status(http.StatusServiceUnavailable, "ServiceUnavailable"))
		client, _, _ := startRun(t, server)
		time.Sleep(20 * time.Second)
		assert.Nil(t, client.Latest())
		assert.Zero(t, server.asked(watchedSources[1]), "nothing is watched before there is a snapshot")
		server.Handle("GET /apis")
		time.Sleep(20 * time.Second)
		assert.NotNil(t, client.Latest())
		assert.NotZero(t, server.asked("watch"))
	})
}

func TestRun_RepeatsFirstRefreshAfterTimeout(t *testing.T) {
	for name, attemptTimeout := range map[string]time.Duration{"no response": 0, "no response in the client's time": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer()
				server.Handle("GET /apis", scripted.Watch())
				httpClient := &http.Client{Transport: scripted.RoundTripper(t, server), Timeout: attemptTimeout}
				conn, err := transport.New("http://server.test", httpClient, nil)
				require.NoError(t, err)
				ctx, cancel := context.WithCancelCause(t.Context())
				client := New(conn, nil)
				ended := make(chan error, 1)
				go func() { ended <- client.Run(ctx) }()
				time.Sleep(time.Minute)
				server.Handle("GET /apis")
				time.Sleep(time.Minute)
				assert.NotNil(t, client.Latest())
				cancel(io.ErrClosedPipe)
				require.ErrorIs(t, <-ended, io.ErrClosedPipe)
			})
		})
	}
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
		name, route string
		after       time.Duration // at most
	}{
		{"list", "GET " + watchedSources[1], 15 * time.Second},
		{"watch", "WATCH " + definitionsPath, 15 * time.Second},
		{"discovery", "GET /apis", 15 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer()
				server.Handle(c.route, scripted.Status(http.StatusForbidden, "Forbidden"))
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
		server := newServer()
		_, ended, stop := startRun(t, server)
		time.Sleep(time.Minute)
		server.Handle("GET /apis", scripted.Status(http.StatusForbidden, "Forbidden"))
		<-ended
		assert.True(t, apierrors.IsForbidden(stop()))
		assert.Less(t, time.Since(server.began), 2*time.Minute)
	})
}

func TestRun_ReportsDenialDuringHangingRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.Handle("GET /apis/shop", scripted.Watch())
		server.Handle("WATCH "+definitionsPath, func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			time.Sleep(time.Minute)
			server.Handle("GET /apis", scripted.Status(http.StatusForbidden, "Forbidden"))
			scripted.Watch(widgetsModified)(w, r)
		})
		_, ended, stop := startRun(t, server)
		select {
		case <-ended:
		case <-time.After(2 * time.Minute):
		}
		assert.NotZero(t, server.asked("/apis/shop"))
		assert.True(t, apierrors.IsForbidden(stop()), "it waits for the request that hangs")
	})
}

func TestRun_SurvivesSingleDenialsOfDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		deny := []time.Duration{60 * time.Second, 85 * time.Second}
		denied := atomic.Int32{}
		server.Handle("GET /apis", func(w http.ResponseWriter, r *http.Request) {
			if next := int(denied.Load()); next < len(deny) && time.Since(server.began) >= deny[next] {
				denied.Add(1)
				scripted.Status(http.StatusForbidden, "Forbidden")(w, r)
				return
			}
			scripted.New(deployments).ServeHTTP(w, r)
		})
		_, _, stop := startRun(t, server)
		time.Sleep(3 * time.Minute)
		assert.EqualValues(t, len(deny), denied.Load())
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

func TestRun_WatchesAgainAfterNotFoundDuringRelist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		var lists atomic.Int32
		server.Handle("WATCH "+definitionsPath, scripted.Watch(expiredEvent))
		server.Handle("GET "+definitionsPath, func(w http.ResponseWriter, r *http.Request) {
			if lists.Add(1) == 2 {
				w.WriteHeader(http.StatusNotFound)
				server.Handle("WATCH "+definitionsPath, scripted.Watch())
				return
			}
			scripted.JSON(emptyMetadata)(w, r)
		})
		_, _, stop := startRun(t, server)
		time.Sleep(time.Minute)
		assert.EqualValues(t, 3, lists.Load())
		assert.Equal(t, 2, server.asked("watch"))
		require.ErrorIs(t, stop(), context.Canceled)
	})
}

func TestRun_WatchesSourcesThatAppear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.Handle("GET "+definitionsPath, scripted.NotServed)
		startRun(t, server)
		time.Sleep(time.Minute)
		assert.Zero(t, server.asked("watch"))
		assert.Less(t, server.asked(definitionsPath), 15)
		server.Handle("GET "+definitionsPath, scripted.JSON(emptyMetadata))
		time.Sleep(time.Minute)
		assert.Equal(t, 1, server.asked("watch"))
	})
}

func TestRun_RefreshesAllDespiteBusyDefinitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.Handle("WATCH "+definitionsPath, func(w http.ResponseWriter, r *http.Request) {
			for i := 6; r.Context().Err() == nil; i++ {
				_, _ = fmt.Fprintln(w, strings.Replace(widgetsModified, `"6"`, fmt.Sprintf(`"%d"`, i), 1))
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(4 * time.Second):
				}
			}
		})
		last := server.began
		server.Handle("GET /apis", func(w http.ResponseWriter, r *http.Request) {
			assert.LessOrEqual(t, time.Since(last), 40*time.Second)
			last = time.Now()
			scripted.New(deployments).ServeHTTP(w, r)
		})
		_, _, stop := startRun(t, server)
		time.Sleep(10 * time.Minute)
		require.ErrorIs(t, stop(), context.Canceled)
		assert.Greater(t, last.Sub(server.began), 9*time.Minute)
	})
}

func TestRun_EndsHangingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		client, _, stop := startRun(t, server)
		time.Sleep(time.Second)
		server.Handle("GET /apis", scripted.Watch()) // as a connection that is dead unnoticed
		time.Sleep(2 * time.Minute)
		server.serve(deployments + jobs)
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
			server := newServer()
			server.Handle("WATCH "+definitionsPath, handle)
			_, _, stop := startRun(t, server)
			time.Sleep(time.Minute)
			watches := server.asked("watch")
			assert.Less(t, watches, 120, name) // with jitter; transport repeats what was aborted three times
			assert.Greater(t, watches, 4, name)
			require.ErrorIs(t, stop(), context.Canceled, name)
		}
	})
}
