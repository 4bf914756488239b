package dynamic_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// book serves the pages of a list of pods by their continue tokens, and records the queries.
type book struct {
	mu      sync.Mutex
	queries []string
	pages   map[string]http.HandlerFunc
}

func (b *book) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api" || r.URL.Path == "/apis" {
		(&wire{}).ServeHTTP(w, r)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the client leaves
	b.mu.Lock()
	b.queries = append(b.queries, r.URL.RawQuery)
	page := b.pages[r.URL.Query().Get("continue")]
	b.mu.Unlock()
	page(w, r)
}

func (b *book) asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queries
}

func serve(t *testing.T, pages map[string]http.HandlerFunc) (*dynamic.Resource, *book) {
	t.Helper()
	b := &book{pages: pages}
	server := httptest.NewServer(b)
	client, err := dynamic.Connect(t.Context(), &transport.Config{Server: server.URL})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close(); server.Close() })
	return resource(t, client, "pods"), b
}

// page is a page of those pods, behind which the list goes on with that token.
func page(next string, names ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, opening(next), items(names...), `]}`)
	}
}

func opening(next string) string {
	return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":%q},"items":[`, next)
}

func items(names ...string) string {
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
	}
	return strings.Join(all, ",")
}

// gone refuses a page whose moment is forgotten, and offers the rest as it is now by that token.
func gone(rest string) http.HandlerFunc {
	return failure(http.StatusGone, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{"continue":%q},"status":"Failure","reason":"Expired","code":410,"message":"too old"}`, rest))
}

func failure(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// inTurn answers with each handler once, with the last again and again.
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

func TestTheNextPageIsAskedForWhileThisOneIsRead(t *testing.T) {
	asked := make(chan struct{})
	pods, book := serve(t, map[string]http.HandlerFunc{
		"": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, opening("2"), items("a", "b"))
			flush(w)
			<-asked // this page ends only once the next one is asked for
			fmt.Fprint(w, `,`, items("c"), `]}`)
		},
		"2": func(w http.ResponseWriter, r *http.Request) {
			close(asked)
			page("", "d")(w, r)
		},
	})
	got, err := names(t, pods, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Pod a", "Pod b", "Pod c", "Pod d"}, got)
	assert.Equal(t, []string{"limit=500", "continue=2&limit=500"}, book.asked())
}

func TestNoPageIsAskedForBeforeTheSecondObjectIsWanted(t *testing.T) {
	pods, book := serve(t, map[string]http.HandlerFunc{"": page("2", "a", "b", "c")})
	for pod, err := range pods.List(t.Context(), nil) {
		require.NoError(t, err)
		assert.Equal(t, "a", pod.GetName())
		break
	}
	assert.Len(t, book.asked(), 1)
}

// TestAListWhoseMetadataComesLastIsReadTheSame has pages as servers write them for custom resources.
func TestAListWhoseMetadataComesLastIsReadTheSame(t *testing.T) {
	behind := func(next string, names ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"apiVersion":"v1","items":[%s],"kind":"PodList","metadata":{"continue":%q}}`, items(names...), next)
		}
	}
	pods, book := serve(t, map[string]http.HandlerFunc{"": behind("2", "a", "b"), "2": behind("3"), "3": behind("", "c")})
	got, err := names(t, pods, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Pod a", "Pod b", "Pod c"}, got)
	assert.Equal(t, []string{"limit=500", "continue=2&limit=500", "continue=3&limit=500"}, book.asked())
}

func TestLeavingTheLoopEndsTheNextPagesRequest(t *testing.T) {
	for name, begin := range map[string]func(http.ResponseWriter){
		"before it is answered": func(http.ResponseWriter) {},
		"while it is answered":  func(w http.ResponseWriter) { fmt.Fprint(w, opening(""), items("c")); flush(w) },
	} {
		t.Run(name, func(t *testing.T) {
			asked, left := make(chan struct{}), make(chan struct{})
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

// TestAFailingNextPageIsAnErrorBehindThisOne has pages that fail before the one in front of them is read.
func TestAFailingNextPageIsAnErrorBehindThisOne(t *testing.T) {
	for name, tc := range map[string]struct {
		second http.HandlerFunc
		says   string
		is     error
	}{
		"refused":    {failure(http.StatusInternalServerError, "boom"), "500 Internal Server Error", nil},
		"expired":    {gone("rest"), "too old", nil},
		"empty":      {failure(http.StatusOK, ""), "list pods: GET http://127.0.0.1", io.ErrUnexpectedEOF},
		"cut":        {failure(http.StatusOK, opening("3")+`{"metadata"`), "list pods: GET http://127.0.0.1", io.ErrUnexpectedEOF},
		"cut behind": {failure(http.StatusOK, opening("3")+`]`), "list pods: GET http://127.0.0.1", io.ErrUnexpectedEOF},
		"broken off": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "GET http://127.0.0.1", io.EOF},
		"not a list": {failure(http.StatusOK, podReply), "is not a list", nil},
		"a web page": {failure(http.StatusOK, `<html>`), "invalid JSON", nil},
	} {
		t.Run(name, func(t *testing.T) {
			answered := make(chan struct{})
			var once sync.Once
			pods, _ := serve(t, map[string]http.HandlerFunc{
				"": func(w http.ResponseWriter, _ *http.Request) {
					fmt.Fprint(w, opening("2"), items("a", "b"))
					flush(w)
					<-answered
					fmt.Fprint(w, `,`, items("c"), `]}`)
				},
				"2": func(w http.ResponseWriter, r *http.Request) {
					defer once.Do(func() { close(answered) })
					tc.second(w, r)
				},
			})
			heard := 0
			got, err := names(t, pods.Paging(&dynamic.Paging{Page: func(metav1.ListMeta) { heard++ }}), nil)
			require.ErrorContains(t, err, tc.says)
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
			assert.Equal(t, []string{"Pod a", "Pod b", "Pod c"}, got)
			assert.Equal(t, 1, heard, "a page that failed is none")
		})
	}
}

func TestAPageThatStallsEndsWithTheContext(t *testing.T) {
	left := make(chan struct{})
	pods, _ := serve(t, map[string]http.HandlerFunc{
		"": page("2", "a", "b"),
		"2": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, opening(""), items("c"), ",")
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

func TestPagingHearsOfEveryPageBehindItsLastObject(t *testing.T) {
	pods, _ := serve(t, map[string]http.HandlerFunc{
		"": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"2","remainingItemCount":1},"items":[`, items("a", "b"), `]}`)
		},
		"2": page("", "c"),
	})
	var story []string
	told := pods.Paging(&dynamic.Paging{Page: func(meta metav1.ListMeta) {
		remaining := int64(0)
		if meta.RemainingItemCount != nil {
			remaining = *meta.RemainingItemCount
		}
		story = append(story, fmt.Sprintf("page of %s, next %q, remaining %d", meta.ResourceVersion, meta.Continue, remaining))
	}})
	for pod, err := range told.List(t.Context(), nil) {
		require.NoError(t, err)
		story = append(story, pod.GetName())
	}
	assert.Equal(t, []string{"a", "b", `page of 9, next "2", remaining 1`, "c", `page of 9, next "", remaining 0`}, story)

	story = nil
	for _, handle := range []*dynamic.Resource{pods, told.Paging(nil)} {
		require.NoError(t, drain(handle.List(t.Context(), nil)))
	}
	assert.Empty(t, story, "the handle itself stays as it is, and nil takes the choice back")
}

func TestAnExpiredListDoesAsItsPagingSays(t *testing.T) {
	exact := &metav1.ListOptions{Limit: 2, ResourceVersion: "9", ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	const first = "limit=2&resourceVersion=9&resourceVersionMatch=Exact"
	for name, tc := range map[string]struct {
		pages   map[string]http.HandlerFunc
		choices []dynamic.Expiry
		want    []string
		queries []string
		fails   bool
	}{
		"fail": {
			pages:   map[string]http.HandlerFunc{"": page("2", "a", "b"), "2": gone("rest")},
			choices: []dynamic.Expiry{dynamic.Fail},
			want:    []string{"Pod a", "Pod b"}, queries: []string{first, "continue=2&limit=2"}, fails: true,
		},
		"go on": {
			pages:   map[string]http.HandlerFunc{"": page("2", "a", "b"), "2": gone("rest"), "rest": page("", "d")},
			choices: []dynamic.Expiry{dynamic.GoOn},
			want:    []string{"Pod a", "Pod b", "Pod d"}, queries: []string{first, "continue=2&limit=2", "continue=rest&limit=2"},
		},
		"go on without a rest": {
			pages:   map[string]http.HandlerFunc{"": page("2", "a", "b"), "2": gone("")},
			choices: []dynamic.Expiry{dynamic.GoOn},
			want:    []string{"Pod a", "Pod b"}, queries: []string{first, "continue=2&limit=2"}, fails: true,
		},
		"go on, and once more": {
			pages: map[string]http.HandlerFunc{"": page("2", "a", "b"), "2": gone("rest"),
				"rest": page("3", "d", "e"), "3": gone("rest2"), "rest2": gone("rest3"), "rest3": page("", "f")},
			choices: []dynamic.Expiry{dynamic.GoOn, dynamic.GoOn, dynamic.GoOn},
			want:    []string{"Pod a", "Pod b", "Pod d", "Pod e", "Pod f"},
			queries: []string{first, "continue=2&limit=2", "continue=rest&limit=2", "continue=3&limit=2", "continue=rest2&limit=2", "continue=rest3&limit=2"},
		},
		"restart": {
			pages:   map[string]http.HandlerFunc{"": inTurn(page("2", "a", "b"), page("new", "a", "c")), "2": gone("rest"), "new": page("", "d")},
			choices: []dynamic.Expiry{dynamic.Restart},
			want:    []string{"Pod a", "Pod b", "Pod a", "Pod c", "Pod d"},
			queries: []string{first, "continue=2&limit=2", "limit=2", "continue=new&limit=2"},
		},
		"restart, restart and fail": {
			pages:   map[string]http.HandlerFunc{"": page("2", "a"), "2": gone("rest")},
			choices: []dynamic.Expiry{dynamic.Restart, dynamic.Restart, dynamic.Fail},
			want:    []string{"Pod a", "Pod a", "Pod a"},
			queries: []string{first, "continue=2&limit=2", "limit=2", "continue=2&limit=2", "limit=2", "continue=2&limit=2"}, fails: true,
		},
		"restart, then go on": {
			pages:   map[string]http.HandlerFunc{"": page("2", "a"), "2": gone("rest"), "rest": page("", "b")},
			choices: []dynamic.Expiry{dynamic.Restart, dynamic.GoOn},
			want:    []string{"Pod a", "Pod a", "Pod b"},
			queries: []string{first, "continue=2&limit=2", "limit=2", "continue=2&limit=2", "continue=rest&limit=2"},
		},
		"the first page": {
			pages:   map[string]http.HandlerFunc{"": inTurn(gone(""), page("", "a"))},
			choices: []dynamic.Expiry{dynamic.Restart},
			want:    []string{"Pod a"}, queries: []string{first, "limit=2"},
		},
		"a code of 410 without a reason": {
			pages:   map[string]http.HandlerFunc{"": inTurn(failure(http.StatusGone, "gone"), page("", "a"))},
			choices: []dynamic.Expiry{dynamic.Restart},
			want:    []string{"Pod a"}, queries: []string{first, "limit=2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods, book := serve(t, tc.pages)
			asked := 0
			got, err := names(t, pods.Paging(&dynamic.Paging{Expired: func(err error) dynamic.Expiry {
				assert.True(t, apierrors.IsResourceExpired(err) || apierrors.IsGone(err), "%v", err)
				asked++
				return tc.choices[asked-1]
			}}), exact)
			assert.Equal(t, tc.fails, err != nil, "%v", err)
			assert.Equal(t, tc.fails, apierrors.IsResourceExpired(err), "%v", err)
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.queries, book.asked())
			assert.Equal(t, len(tc.choices), asked)
		})
	}
}

func TestARestartWithoutEndPausesAndEndsWithTheContext(t *testing.T) {
	pods, book := serve(t, map[string]http.HandlerFunc{"": gone("")})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := 0
	err := drain(pods.Paging(&dynamic.Paging{Expired: func(error) dynamic.Expiry {
		if asked++; asked == 3 {
			cancel()
		}
		return dynamic.Restart
	}}).List(ctx, nil))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "list pods: wait to go on after too old: context canceled")
	assert.True(t, apierrors.IsResourceExpired(err))
	assert.Len(t, book.asked(), 3, "the pause, not a request, ended with the context")
}

func TestOtherErrorsAreNoExpiry(t *testing.T) {
	pods, _ := serve(t, map[string]http.HandlerFunc{"": failure(http.StatusForbidden, "no")})
	err := drain(pods.Paging(&dynamic.Paging{Expired: func(err error) dynamic.Expiry {
		t.Errorf("asked about %v", err)
		return dynamic.Restart
	}}).List(t.Context(), nil))
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}
