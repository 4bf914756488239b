package dynamic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

// widgetServer is a scripted server of the custom resource widgets.example.com and its definition.
type widgetServer struct {
	*scripted.Server
	mu       sync.Mutex
	replaced int           // number of replacements of the definition, which change its UID
	expires  bool          // a watch from a resourceVersion has expired
	cut      chan struct{} // closed to end all watches
}

const (
	widgetResource   = "cluster example.com/v1 widgets widget Widget - - get,list,watch"
	widgetDefinition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
)

func newWidgetServer(definition int, widgets ...string) *widgetServer {
	s := &widgetServer{Server: scripted.New(""), cut: make(chan struct{})}
	s.serve(true, definition, 4, widgets...)
	return s
}

// serve ends all watches. From then on the server serves widgets or not, and definition is the status of the definition's path.
func (s *widgetServer) serve(served bool, definition, version int, widgets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	cut := make(chan struct{})
	s.cut = cut
	metadata := scripted.JSON(fmt.Sprintf(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"widgets.example.com","uid":"d%d"}}`, s.replaced))
	switch definition {
	case http.StatusOK:
	case http.StatusNotFound:
		metadata = scripted.NotFound("widgets.example.com")
	default:
		metadata = scripted.Status(definition, http.StatusText(definition))
	}
	s.Handle("GET "+widgetDefinition, metadata)
	if !served {
		s.Serve("")
		s.Handle("")
		return
	}
	s.Serve(widgetResource)
	s.Handle("", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if s.expires && query.Get("resourceVersion") != "" {
			scripted.Status(http.StatusGone, "Expired")(w, r)
			return
		}
		if query.Get("sendInitialEvents") == "true" {
			for _, widget := range widgets {
				_, _ = io.WriteString(w, scripted.Event("ADDED", widget))
			}
			_, _ = io.WriteString(w, initialEventsEnd(fmt.Sprint(version)))
		}
		flush(w)
		select {
		case <-cut:
		case <-r.Context().Done():
		}
	})
}

// definitions returns the number of requests for the definition.
func (s *widgetServer) definitions() (count int) {
	for _, r := range s.Requests() {
		if strings.HasPrefix(r.URI, widgetDefinition) {
			count++
		}
	}
	return count
}

// endAfter ends all watches after each of these times, and serves no widgets after the last.
func (s *widgetServer) endAfter(times ...time.Duration) {
	for i, after := range times {
		time.AfterFunc(after, func() { s.serve(i < len(times)-1, http.StatusOK, 0) })
	}
}

// followWidgets follows the widgets of a server and returns a function that reads n changes.
func followWidgets(t *testing.T, s *widgetServer) (*dynamic.Client, func(n int) []string, *interruptions) {
	t.Helper()
	client := serveClient(t, s, nil)
	broken := &interruptions{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	next, stop := iter.Pull2(resource(t, client, "widgets").Follow(ctx, broken.options()))
	t.Cleanup(stop)
	return client, func(n int) (got []string) {
		t.Helper()
		for range n {
			change, err, more := next()
			require.NoError(t, err)
			require.True(t, more)
			got = append(got, changeText(change))
		}
		return got
	}, broken
}

func widgetJSON(name, uid, version string) string {
	return `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"` + name + `","uid":"` + uid + `","resourceVersion":"` + version + `"}}`
}

func TestFollow_KeepsStateWhileNotServed(t *testing.T) {
	a1 := widgetJSON("a", "u1", "1")
	a2 := widgetJSON("a", "u1", "9")
	b := widgetJSON("b", "u2", "2")
	for name, tc := range map[string]struct {
		before, after int // the status of the definition
		deleted       []string
		reason        string
	}{
		"version not served":               {before: 200, after: 200, reason: "its CustomResourceDefinition exists"},
		"definition deleted":               {before: 200, after: 404, deleted: []string{"DELETED a u1 1 inferred", "DELETED b u2 2 inferred"}},
		"definition unreadable":            {before: 403, after: 403, reason: "its CustomResourceDefinition cannot be read: as scripted"},
		"definition unreadable later":      {before: 200, after: 403, reason: "its CustomResourceDefinition cannot be read: as scripted"},
		"definition unreadable before":     {before: 403, after: 404, reason: "there is no CustomResourceDefinition, and none was seen before"},
		"aggregated API":                   {before: 404, after: 404, reason: "there is no CustomResourceDefinition, and none was seen before"},
		"definitions not served, starting": {before: 200, after: 503, reason: "its CustomResourceDefinition cannot be read: "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newWidgetServer(tc.before, a1, b)
				_, read, broken := followWidgets(t, server)
				assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "ADDED b u2 2", "SYNCED"}, read(4))
				synctest.Wait() // until the definition has been read

				server.serve(false, tc.after, 0)
				began := time.Now()
				assert.Equal(t, []string{"NOTSERVED"}, read(1))
				assert.GreaterOrEqual(t, time.Since(began), 5*time.Second)
				assert.ElementsMatch(t, tc.deleted, read(len(tc.deleted)))

				began = time.Now()
				time.AfterFunc(10*time.Minute, func() { server.serve(true, http.StatusOK, 10, a2) })
				want := []string{"STARTED", "MODIFIED a u1 9", "DELETED b u2 2 inferred", "SYNCED"}
				if tc.deleted != nil {
					want = []string{"STARTED", "ADDED a u1 9", "SYNCED"}
				}
				assert.Equal(t, want, read(len(want)))
				assert.LessOrEqual(t, time.Since(began), 10*time.Minute+3*time.Second)
				last := (*broken)[len(*broken)-1]
				assert.True(t, last.NotServed)
				assert.True(t, last.Relist)
				assert.True(t, apierrors.IsNotFound(last.Err))
				assert.ErrorContains(t, last.Err, tc.reason)
				assert.Equal(t, tc.reason != "", strings.Contains(last.Err.Error(), "not served, its objects are kept: "), last.Err)
				synctest.Wait()
				assert.LessOrEqual(t, server.definitions(), 3+60, "every ten seconds")
			})
		})
	}
}

// TestFollow_DefinitionReplacedWhileDisconnected replaces the definition by another one, which does not serve this version.
func TestFollow_DefinitionReplacedWhileDisconnected(t *testing.T) {
	a := widgetJSON("a", "u1", "1")
	started := []string{"STARTED", "ADDED a u1 1", "SYNCED"}
	replace := func(s *widgetServer, served bool, definition int, widgets ...string) {
		s.mu.Lock()
		s.replaced++
		s.mu.Unlock()
		s.serve(served, definition, 9, widgets...)
	}
	for name, tc := range map[string]struct {
		change func(*widgetServer)
		want   []string
		reason string
	}{
		"replaced": {
			func(s *widgetServer) { replace(s, false, http.StatusOK) },
			[]string{"NOTSERVED", "DELETED a u1 1 inferred"}, "",
		},
		"version not served after a replacement by the same": {
			func(s *widgetServer) {
				s.serve(false, http.StatusNotFound, 0)
				time.Sleep(time.Second)
				replace(s, true, http.StatusOK, widgetJSON("a", "u2", "5"))
				time.Sleep(10 * time.Second)
				s.serve(false, http.StatusOK, 0)
			},
			[]string{"DELETED a u1 1 inferred", "ADDED a u2 5", "NOTSERVED"}, "its CustomResourceDefinition exists",
		},
		"replaced, and unreadable after the last list": {
			func(s *widgetServer) {
				replace(s, true, http.StatusForbidden, a)
				time.Sleep(10 * time.Second)
				s.serve(false, http.StatusOK, 0)
			},
			[]string{"NOTSERVED"}, "its CustomResourceDefinition exists",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newWidgetServer(http.StatusOK, a)
				server.expires = true
				_, read, broken := followWidgets(t, server)
				assert.Equal(t, started, read(len(started)))
				synctest.Wait() // until the definition has been read
				go tc.change(server)
				assert.Equal(t, tc.want, read(len(tc.want)))
				time.AfterFunc(time.Minute, func() { server.serve(true, http.StatusOK, 20, widgetJSON("b", "u3", "15")) })
				want := []string{"STARTED", "ADDED b u3 15", "SYNCED"}
				if tc.reason != "" {
					want = []string{"STARTED", "ADDED b u3 15", "DELETED a ", "SYNCED"}
				}
				got := read(len(want))
				for i := range want {
					assert.Contains(t, got[i], want[i])
				}
				assert.ErrorContains(t, (*broken)[len(*broken)-1].Err, tc.reason)
			})
		})
	}
}

func TestFollow_ResumesWhenDiscoveryFindsResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newWidgetServer(http.StatusOK)
		client, read, broken := followWidgets(t, server)
		assert.Equal(t, []string{"STARTED", "SYNCED"}, read(2))
		server.serve(false, http.StatusNotFound, 0)
		assert.Equal(t, []string{"NOTSERVED"}, read(1))
		_, err := client.Discovery().Refresh(t.Context())
		require.NoError(t, err)
		var served time.Time
		time.AfterFunc(time.Minute+time.Millisecond, func() {
			server.serve(true, http.StatusOK, 9, widgetJSON("a", "u1", "8"))
			served = time.Now()
			_, err := client.Discovery().Refresh(t.Context())
			assert.NoError(t, err)
		})
		assert.Equal(t, []string{"STARTED", "ADDED a u1 8", "SYNCED"}, read(3))
		assert.Equal(t, served, time.Now(), "not delayed until the next request")
		synctest.Wait()
		stacks := make([]byte, 1<<20)
		assert.NotContains(t, string(stacks[:runtime.Stack(stacks, true)]), "unservedPeriod", "nobody waits for the resource any more")

		failures := len(*broken)
		server.endAfter(0, 10*time.Second)
		assert.Equal(t, []string{"NOTSERVED"}, read(1))
		assert.Equal(t, 100*time.Millisecond, (*broken)[failures].Delay, "the first failure")
	})
}

func TestFollow_ReopensClosedStreamAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newWidgetServer(http.StatusOK)
		_, read, broken := followWidgets(t, server)
		assert.Equal(t, []string{"STARTED", "SYNCED"}, read(2))
		server.endAfter(time.Second, 1500*time.Millisecond, 10*time.Second)
		assert.Equal(t, []string{"NOTSERVED"}, read(1))
		assert.Equal(t, []time.Duration{0, 100 * time.Millisecond}, broken.delays()[:2], "unless it lasted less than a second")
	})
}

func TestFollow_DenialsOfStartingServer(t *testing.T) {
	denied := func(lasts time.Duration) response {
		return response{status: 403, body: scripted.StatusJSON(403, "Forbidden"), lasts: lasts}
	}
	partial := respond(scripted.Event("ADDED", podJSON("a", "u1", "1")))
	whole := response{body: scripted.Event("ADDED", podJSON("a", "u1", "1")) + initialEventsEnd("2"), stays: true}
	for name, tc := range map[string]struct {
		responses []response
		want      []string
		ends      bool
	}{
		"at the first request":      {responses: []response{denied(1500 * time.Millisecond), whole}, want: []string{"STARTED", "ADDED a u1 1", "SYNCED"}},
		"within the initial list":   {responses: []response{partial, denied(4 * time.Second), whole}, want: []string{"STARTED", "ADDED a u1 1", "SYNCED"}},
		"permanent":                 {responses: []response{denied(time.Minute)}, ends: true},
		"permanent, after an event": {responses: []response{partial, denied(time.Minute)}, want: []string{"STARTED", "ADDED a u1 1"}, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods, _ := exchanging(t, tc.responses...)
				began := time.Now()
				var got []string
				var ended error
				for change, err := range pods.Follow(t.Context(), nil) {
					if ended = err; err != nil {
						break
					}
					if got = append(got, changeText(change)); !tc.ends && len(got) == len(tc.want) {
						break
					}
				}
				assert.Equal(t, tc.want, got)
				assert.Equal(t, tc.ends, apierrors.IsForbidden(ended), "%v", ended)
				assert.LessOrEqual(t, time.Since(began), 15*time.Second)
			})
		})
	}
}

func TestFollow_NotFoundBeforeSynced(t *testing.T) {
	for name, begun := range map[string]bool{"at the first request": false, "within the initial list": true} {
		for lasts, ends := range map[time.Duration]bool{0: false, 4 * time.Second: false, time.Minute: true} {
			t.Run(fmt.Sprintf("%s, for %s", name, lasts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					responses := []response{{status: 404, body: "404 page not found", lasts: lasts}, {body: initialEventsEnd("2"), stays: true}}
					var listed, deleted []string
					if begun {
						responses = append([]response{respond(scripted.Event("ADDED", podJSON("a", "u1", "1")))}, responses...)
						listed = []string{"STARTED", "ADDED a u1 1"}
						deleted = []string{"DELETED a u1 1 inferred", "SYNCED"}
					} else {
						deleted = []string{"STARTED", "SYNCED"}
					}
					pods, _ := exchanging(t, responses...)
					var got []string
					var ended error
					for change, err := range pods.Follow(t.Context(), nil) {
						if ended = err; err != nil {
							break
						}
						if got = append(got, changeText(change)); change.Type == dynamic.Synced {
							break
						}
					}
					if !ends {
						assert.Equal(t, append(listed, deleted...), got)
						return
					}
					assert.Equal(t, listed, got)
					assert.True(t, apierrors.IsNotFound(ended), "%v", ended)
					assert.ErrorContains(t, ended, "follow pods: not served: ")
				})
			})
		}
	}
}

// TestFollow_AttemptTimeoutIsNotTerminal uses an HTTP client with a time-out of its own.
func TestFollow_AttemptTimeoutIsNotTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newExchanges(response{mute: true}, response{body: scripted.Event("ADDED", podJSON("a", "u1", "1")) + initialEventsEnd("2"), stays: true})
		conn, err := transport.New("http://bubble", &http.Client{Transport: scripted.RoundTripper(t, server), Timeout: time.Minute}, &transport.Options{Namespace: "home"})
		require.NoError(t, err)
		client := dynamic.New(conn, nil)
		defer client.Close()
		assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "SYNCED"}, followFor(t, resource(t, client, "pods"), nil, 3, nil))
	})
}

// cutter is a server behind a proxy that cuts every WatchList after the first event.
type cutter struct {
	mu       sync.Mutex
	requests []string
	heals    time.Time // when the proxy stops cutting
	relist   bool      // the next watch from a version ends with 410
}

func (c *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	a := podJSON("a", "u1", "1")
	b := podJSON("b", "u2", "2")
	switch c.next(query) {
	case "WatchList cut":
		_, _ = io.WriteString(w, scripted.Event("ADDED", a))
		flush(w)
		scripted.Break(w, r)
	case "WatchList":
		scripted.Watch(scripted.Event("ADDED", a), scripted.Event("ADDED", b), initialEventsEnd("3"))(w, r)
	case "list":
		_, _ = io.WriteString(w, podList("3", a, b))
	case "":
		_, _ = io.WriteString(w, scripted.ExpiredEvent())
	default:
		expires := response{then: scripted.ExpiredEvent(), after: time.Minute}
		expires.write(w, r)
	}
}

// next records a request by its kind; a watch that ends with 410 at once is "" and not recorded.
func (c *cutter) next(query url.Values) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	request := "watch"
	switch {
	case query.Get("sendInitialEvents") == "true" && time.Now().Before(c.heals):
		request = "WatchList cut"
	case query.Get("sendInitialEvents") == "true":
		request = "WatchList"
	case query.Get("watch") == "":
		request = "list"
	case c.relist:
		c.relist = false
		return ""
	}
	c.requests = append(c.requests, request)
	return request
}

// serve returns a client of the server.
func (c *cutter) serve(t *testing.T) *dynamic.Client {
	t.Helper()
	server := scripted.New(resources)
	server.Handle("", c.ServeHTTP)
	return serveClient(t, server, nil)
}

func TestFollow_ListsPagesIfWatchListIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &cutter{heals: time.Now().Add(7*time.Minute + 30*time.Second)}
		client := server.serve(t)
		ctx, cancel := context.WithTimeout(t.Context(), 14*time.Minute)
		defer cancel()
		var got []string
		for change, err := range resource(t, client, "pods").Follow(ctx, nil) {
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				break
			}
			got = append(got, changeText(change))
		}
		assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "ADDED b u2 2", "SYNCED"}, got)
		relist := []string{"list", "watch"}
		want := []string{"WatchList cut", "WatchList cut"}
		for range 5 { // a relist a minute
			want = append(want, relist...)
		}
		want = append(want, "WatchList cut") // tried again after five minutes, once
		for range 5 {
			want = append(want, relist...)
		}
		assert.Equal(t, append(want, "WatchList"), server.requests)
	})
}

func TestFollow_PrematureBookmarkDoesNotMoveVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := podJSON("a", "u1", "1")
		b := podJSON("b", "u2", "2")
		whole := scripted.Event("ADDED", a) + scripted.Event("ADDED", b) + initialEventsEnd("3")
		pods, server := exchanging(t,
			respond(bookmark("2")+scripted.Event("ADDED", a)+bookmark("3")), // ends within the initial list
			response{body: whole, then: scripted.ExpiredEvent(), after: time.Second},
			respond(scripted.Event("ADDED", a)+bookmark("8")), // b is not deleted
			response{body: scripted.Event("ADDED", a) + bookmark("8") + scripted.Event("ADDED", b) + initialEventsEnd("9"), then: scripted.Event("ADDED", podJSON("c", "u3", "10")), after: time.Second},
		)
		var versions []string
		opts := &dynamic.FollowOptions{OnProgress: func(version string) { versions = append(versions, version) }}
		assert.Equal(t, []string{"STARTED", "ADDED a u1 1", "ADDED b u2 2", "SYNCED", "ADDED c u3 10"}, followFor(t, pods, opts, 5, nil))
		assert.Equal(t, []string{watchListQuery, watchListQuery, watchListQuery, watchListQuery}, listWatchQueries(t, server))
		assert.Equal(t, []string{"3", "9"}, versions)
	})
}

func TestFollow_ContextErrorHasCause(t *testing.T) {
	cause := errors.New("shut down")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, cause)
		defer cancel()
		pods, _ := exchanging(t, response{body: initialEventsEnd("1"), stays: true})
		var ended error
		for _, ended = range pods.Follow(ctx, nil) {
			if ended != nil {
				break
			}
		}
		pods, _ = exchanging(t, absent, response{stays: true})
		_, waited := pods.Wait(ctx, "web", dynamic.Exists())
		for name, err := range map[string]error{"follow pods: ": ended, `wait for pods "home/web": `: waited} {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, cause)
			require.ErrorContains(t, err, name)
		}
	})
}
