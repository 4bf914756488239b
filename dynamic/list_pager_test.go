package dynamic_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

// pageServer serves the pages of a list of pods by their continue tokens.
type pageServer struct{ *scripted.Server }

// seen returns the queries.
func (s pageServer) seen() []string {
	var queries []string
	for _, r := range s.Requests() {
		_, query, _ := strings.Cut(r.URI, "?")
		queries = append(queries, query)
	}
	return queries
}

func serve(t *testing.T, pages map[string]http.HandlerFunc) (*dynamic.Resource, pageServer) {
	t.Helper()
	client, server := servePages(t, pages)
	return resource(t, client, "pods"), server
}

func servePages(t *testing.T, pages map[string]http.HandlerFunc) (*dynamic.Client, pageServer) {
	t.Helper()
	server := scripted.New(resources)
	server.Handle("", func(w http.ResponseWriter, r *http.Request) { pages[r.URL.Query().Get("continue")](w, r) })
	return serveClient(t, server, nil), pageServer{server}
}

// page serves a page of pods with a continue token.
func page(next string, names ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, pageStart(next), items(names...), `]}`)
	}
}

func pageStart(next string) string {
	return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":%q},"items":[`, next)
}

func items(names ...string) string {
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
	}
	return strings.Join(all, ",")
}

// gone serves the error for an expired continue token, with a token for the remaining objects.
func gone(rest string) http.HandlerFunc {
	return failure(http.StatusGone, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{"continue":%q},"status":"Failure","reason":"Expired","code":410,"message":"too old"}`, rest))
}

func failure(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// inTurn responds with each handler once, with the last again and again.
func inTurn(handlers ...http.HandlerFunc) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		handler := handlers[0]
		if len(handlers) > 1 {
			handlers = handlers[1:]
		}
		mu.Unlock()
		handler(w, r)
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

func TestList_PrefetchesNextPage(t *testing.T) {
	requested := make(chan struct{})
	pods, server := serve(t, map[string]http.HandlerFunc{
		"": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, pageStart("2"), items("a", "b"))
			flush(w)
			<-requested // this page ends only after the request for the next one
			fmt.Fprint(w, `,`, items("c"), `]}`)
		},
		"2": func(w http.ResponseWriter, r *http.Request) {
			close(requested)
			page("", "d")(w, r)
		},
	})
	got, err := names(t, pods, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Pod a", "Pod b", "Pod c", "Pod d"}, got)
	assert.Equal(t, []string{"limit=500", "continue=2&limit=500"}, server.seen())
}

func TestList_NoPrefetchBeforeSecondObject(t *testing.T) {
	pods, server := serve(t, map[string]http.HandlerFunc{"": page("2", "a", "b", "c")})
	for pod, err := range pods.List(t.Context(), nil) {
		require.NoError(t, err)
		assert.Equal(t, "a", pod.GetName())
		break
	}
	assert.Len(t, server.seen(), 1)
}

// TestList_MetadataAfterItems reads pages as servers write them for custom resources.
func TestList_MetadataAfterItems(t *testing.T) {
	metadataLast := func(next string, names ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"apiVersion":"v1","items":[%s],"kind":"PodList","metadata":{"continue":%q}}`, items(names...), next)
		}
	}
	pods, server := serve(t, map[string]http.HandlerFunc{"": metadataLast("2", "a", "b"), "2": metadataLast("3"), "3": metadataLast("", "c")})
	got, err := names(t, pods, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Pod a", "Pod b", "Pod c"}, got)
	assert.Equal(t, []string{"limit=500", "continue=2&limit=500", "continue=3&limit=500"}, server.seen())
}

func TestList_BreakCancelsPrefetch(t *testing.T) {
	for name, begin := range map[string]func(http.ResponseWriter){
		"before the response": func(http.ResponseWriter) {},
		"within the response": func(w http.ResponseWriter) { fmt.Fprint(w, pageStart(""), items("c")); flush(w) },
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan struct{})
			left := make(chan struct{})
			pods, _ := serve(t, map[string]http.HandlerFunc{
				"": page("2", "a", "b"),
				"2": func(w http.ResponseWriter, r *http.Request) {
					begin(w)
					close(asked)
					<-r.Context().Done()
					close(left)
				},
			})
			for pod, err := range pods.List(t.Context(), nil) {
				require.NoError(t, err)
				if pod.GetName() == "b" {
					<-asked
					break
				}
			}
			<-left
		})
	}
}

// TestList_NextPageErrorAfterCurrentPage has a next page that fails while the current one is read.
func TestList_NextPageErrorAfterCurrentPage(t *testing.T) {
	for name, tc := range map[string]struct {
		second  http.HandlerFunc
		wantErr string
		is      error
	}{
		"rejected":   {failure(http.StatusInternalServerError, "boom"), "500 Internal Server Error", nil},
		"expired":    {gone("rest"), "too old", nil},
		"empty":      {failure(http.StatusOK, ""), "list pods: GET http://server.test", io.ErrUnexpectedEOF},
		"cut":        {failure(http.StatusOK, pageStart("3")+`{"metadata"`), "list pods: GET http://server.test", io.ErrUnexpectedEOF},
		"cut later":  {failure(http.StatusOK, pageStart("3")+`]`), "list pods: GET http://server.test", io.ErrUnexpectedEOF},
		"broken off": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "GET http://server.test", io.EOF},
		"not a list": {failure(http.StatusOK, podReply), "is not a list", nil},
		"a web page": {failure(http.StatusOK, `<html>`), "invalid JSON", nil},
	} {
		t.Run(name, func(t *testing.T) {
			responded := make(chan struct{})
			var once sync.Once
			pods, _ := serve(t, map[string]http.HandlerFunc{
				"": func(w http.ResponseWriter, _ *http.Request) {
					fmt.Fprint(w, pageStart("2"), items("a", "b"))
					flush(w)
					<-responded
					fmt.Fprint(w, `,`, items("c"), `]}`)
				},
				"2": func(w http.ResponseWriter, r *http.Request) {
					defer once.Do(func() { close(responded) })
					tc.second(w, r)
				},
			})
			pages := 0
			got, err := names(t, pods.WithPageOptions(&dynamic.PageOptions{OnPage: func(metav1.ListMeta) { pages++ }}), nil)
			require.ErrorContains(t, err, tc.wantErr)
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
			assert.Equal(t, []string{"Pod a", "Pod b", "Pod c"}, got)
			assert.Equal(t, 1, pages, "a failed page is not counted")
		})
	}
}

// openBodies counts the bodies of responses that are not closed.
type openBodies struct {
	http.RoundTripper
	count atomic.Int32
}

func (o *openBodies) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := o.RoundTripper.RoundTrip(r)
	if err == nil {
		o.count.Add(1)
		response.Body = &closableBody{response.Body, sync.OnceFunc(func() { o.count.Add(-1) })}
	}
	return response, err
}

type closableBody struct {
	io.ReadCloser
	closed func()
}

func (b *closableBody) Close() error {
	b.closed()
	return b.ReadCloser.Close()
}

func TestList_ClosesBodies(t *testing.T) {
	first := pageStart("2") + items("a", "b", "c") + `]}`
	second := pageStart("") + items("d") + `]}`
	for name, tc := range map[string]struct {
		responses []response
		leaveAt   string
	}{
		"whole list":                 {[]response{respond(first), respond(second)}, ""},
		"left in the first page":     {[]response{respond(first)}, "a"},
		"left with a page requested": {[]response{respond(first), respond(second)}, "c"},
		"cut":                        {[]response{respond(pageStart("2") + items("a"))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bodies := &openBodies{RoundTripper: scripted.RoundTripper(t, newExchanges(tc.responses...))}
			conn, err := transport.New("http://bubble", &http.Client{Transport: bodies}, &transport.Options{Namespace: "home"})
			require.NoError(t, err)
			client := dynamic.New(conn, nil)
			defer client.Close()
			for pod, err := range resource(t, client, "pods").List(t.Context(), nil) {
				if err != nil || pod.GetName() == tc.leaveAt {
					break
				}
			}
			assert.Zero(t, bodies.count.Load())
		})
	}
}

func TestList_StalledPageEndsWithContext(t *testing.T) {
	left := make(chan struct{})
	pods, _ := serve(t, map[string]http.HandlerFunc{
		"": page("2", "a", "b"),
		"2": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, pageStart(""), items("c"), ",")
			flush(w)
			<-r.Context().Done()
			close(left)
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	var got []string
	for pod, err := range pods.List(ctx, nil) {
		if err != nil {
			last = err
			continue
		}
		if got = append(got, pod.GetName()); pod.GetName() == "c" {
			cancel()
		}
	}
	require.ErrorIs(t, last, context.Canceled)
	assert.Equal(t, []string{"a", "b", "c"}, got)
	<-left
}

func TestPageOptions_OnPageAfterLastObject(t *testing.T) {
	pods, _ := serve(t, map[string]http.HandlerFunc{
		"": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"2","remainingItemCount":1},"items":[`, items("a", "b"), `]}`)
		},
		"2": page("", "c"),
	})
	var events []string
	reporting := pods.WithPageOptions(&dynamic.PageOptions{OnPage: func(meta metav1.ListMeta) {
		remaining := int64(0)
		if meta.RemainingItemCount != nil {
			remaining = *meta.RemainingItemCount
		}
		events = append(events, fmt.Sprintf("page of %s, next %q, remaining %d", meta.ResourceVersion, meta.Continue, remaining))
	}})
	for pod, err := range reporting.List(t.Context(), nil) {
		require.NoError(t, err)
		events = append(events, pod.GetName())
	}
	assert.Equal(t, []string{"a", "b", `page of 9, next "2", remaining 1`, "c", `page of 9, next "", remaining 0`}, events)

	events = nil
	for _, handle := range []*dynamic.Resource{pods, reporting.WithPageOptions(nil)} {
		require.NoError(t, drain(handle.List(t.Context(), nil)))
	}
	assert.Empty(t, events, "the handle is not changed, and nil resets the options")
}

func TestPageOptions_OnExpired(t *testing.T) {
	exact := &metav1.ListOptions{Limit: 2, ResourceVersion: "9", ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	const first = "limit=2&resourceVersion=9&resourceVersionMatch=Exact"
	for name, tc := range map[string]struct {
		pages   map[string]http.HandlerFunc
		choices []dynamic.ExpiryPolicy
		want    []string
		queries []string
		fails   bool
	}{
		"fail": {
			pages:   map[string]http.HandlerFunc{"": page("2", "a", "b"), "2": gone("rest")},
			choices: []dynamic.ExpiryPolicy{dynamic.ExpiryFail},
			want:    []string{"Pod a", "Pod b"}, queries: []string{first, "continue=2&limit=2"}, fails: true,
		},
		"continue": {
			pages:   map[string]http.HandlerFunc{"": page("2", "a", "b"), "2": gone("rest"), "rest": page("", "d")},
			choices: []dynamic.ExpiryPolicy{dynamic.ExpiryContinue},
			want:    []string{"Pod a", "Pod b", "Pod d"}, queries: []string{first, "continue=2&limit=2", "continue=rest&limit=2"},
		},
		"continue without a token": {
			pages:   map[string]http.HandlerFunc{"": page("2", "a", "b"), "2": gone("")},
			choices: []dynamic.ExpiryPolicy{dynamic.ExpiryContinue},
			want:    []string{"Pod a", "Pod b"}, queries: []string{first, "continue=2&limit=2"}, fails: true,
		},
		"continue repeatedly": {
			pages: map[string]http.HandlerFunc{"": page("2", "a", "b"), "2": gone("rest"),
				"rest": page("3", "d", "e"), "3": gone("rest2"), "rest2": gone("rest3"), "rest3": page("", "f")},
			choices: []dynamic.ExpiryPolicy{dynamic.ExpiryContinue, dynamic.ExpiryContinue, dynamic.ExpiryContinue},
			want:    []string{"Pod a", "Pod b", "Pod d", "Pod e", "Pod f"},
			queries: []string{first, "continue=2&limit=2", "continue=rest&limit=2", "continue=3&limit=2", "continue=rest2&limit=2", "continue=rest3&limit=2"},
		},
		"restart": {
			pages:   map[string]http.HandlerFunc{"": inTurn(page("2", "a", "b"), page("new", "a", "c")), "2": gone("rest"), "new": page("", "d")},
			choices: []dynamic.ExpiryPolicy{dynamic.ExpiryRestart},
			want:    []string{"Pod a", "Pod b", "Pod a", "Pod c", "Pod d"},
			queries: []string{first, "continue=2&limit=2", "limit=2", "continue=new&limit=2"},
		},
		"restart, restart and fail": {
			pages:   map[string]http.HandlerFunc{"": page("2", "a"), "2": gone("rest")},
			choices: []dynamic.ExpiryPolicy{dynamic.ExpiryRestart, dynamic.ExpiryRestart, dynamic.ExpiryFail},
			want:    []string{"Pod a", "Pod a", "Pod a"},
			queries: []string{first, "continue=2&limit=2", "limit=2", "continue=2&limit=2", "limit=2", "continue=2&limit=2"}, fails: true,
		},
		"restart, then continue": {
			pages:   map[string]http.HandlerFunc{"": page("2", "a"), "2": gone("rest"), "rest": page("", "b")},
			choices: []dynamic.ExpiryPolicy{dynamic.ExpiryRestart, dynamic.ExpiryContinue},
			want:    []string{"Pod a", "Pod a", "Pod b"},
			queries: []string{first, "continue=2&limit=2", "limit=2", "continue=2&limit=2", "continue=rest&limit=2"},
		},
		"first page": {
			pages:   map[string]http.HandlerFunc{"": inTurn(gone(""), page("", "a"))},
			choices: []dynamic.ExpiryPolicy{dynamic.ExpiryRestart},
			want:    []string{"Pod a"}, queries: []string{first, "limit=2"},
		},
		"410 without a reason": {
			pages:   map[string]http.HandlerFunc{"": inTurn(failure(http.StatusGone, "gone"), page("", "a"))},
			choices: []dynamic.ExpiryPolicy{dynamic.ExpiryRestart},
			want:    []string{"Pod a"}, queries: []string{first, "limit=2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods, server := serve(t, tc.pages)
			calls := 0
			got, err := names(t, pods.WithPageOptions(&dynamic.PageOptions{OnExpired: func(err error) dynamic.ExpiryPolicy {
				assert.True(t, apierrors.IsResourceExpired(err) || apierrors.IsGone(err), "%v", err)
				calls++
				return tc.choices[calls-1]
			}}), exact)
			assert.Equal(t, tc.fails, err != nil, "%v", err)
			assert.Equal(t, tc.fails, apierrors.IsResourceExpired(err), "%v", err)
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.queries, server.seen())
			assert.Equal(t, len(tc.choices), calls)
		})
	}
}

func TestPageOptions_RestartBacksOff(t *testing.T) {
	pods, server := serve(t, map[string]http.HandlerFunc{"": gone("")})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls := 0
	err := drain(pods.WithPageOptions(&dynamic.PageOptions{OnExpired: func(error) dynamic.ExpiryPolicy {
		if calls++; calls == 3 {
			cancel()
		}
		return dynamic.ExpiryRestart
	}}).List(ctx, nil))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "list pods: back off after too old: context canceled")
	assert.True(t, apierrors.IsResourceExpired(err))
	assert.Len(t, server.seen(), 3, "ctx ended the delay, not a request")
}

func TestPageOptions_OnExpiredIgnoresOtherErrors(t *testing.T) {
	pods, _ := serve(t, map[string]http.HandlerFunc{"": failure(http.StatusForbidden, "no")})
	err := drain(pods.WithPageOptions(&dynamic.PageOptions{OnExpired: func(err error) dynamic.ExpiryPolicy {
		t.Errorf("called with %v", err)
		return dynamic.ExpiryRestart
	}}).List(t.Context(), nil))
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

// TestList_ConstantMemory reads 30 pages of 1 MB and measures the heap after each: the next
// page waits in the connection.
func TestList_ConstantMemory(t *testing.T) {
	const pages, perPage, most = 30, 100, 8 << 20
	filler := strings.Repeat("x", 10<<10)
	response := func(w http.ResponseWriter, r *http.Request) {
		number, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		next := strconv.Itoa(number + 1)
		if number+1 == pages {
			next = ""
		}
		fmt.Fprint(w, pageStart(next))
		for i := range perPage {
			if i > 0 {
				fmt.Fprint(w, ",")
			}
			fmt.Fprintf(w, `{"metadata":{"name":"p%d"},"data":%q}`, i, filler)
		}
		fmt.Fprint(w, `]}`)
	}
	handlers := map[string]http.HandlerFunc{"": response}
	for number := range pages {
		handlers[strconv.Itoa(number)] = response
	}
	pods, _ := serve(t, handlers)
	before := liveBytes()
	var peak uint64
	paged := pods.WithPageOptions(&dynamic.PageOptions{OnPage: func(metav1.ListMeta) { peak = max(peak, liveBytes()) }})
	count := 0
	for _, err := range paged.List(t.Context(), nil) {
		require.NoError(t, err)
		count++
	}
	assert.Equal(t, pages*perPage, count)
	assert.Less(t, peak, before+most)
}

// liveBytes returns the size of the heap without garbage.
func liveBytes() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
