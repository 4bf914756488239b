package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// serve gives a Conn to a server that answers with handler, at a path as a proxy would put it.
func serve(t *testing.T, handler http.HandlerFunc) *transport.Conn {
	t.Helper()
	server := httptest.NewServer(handler)
	conn, err := transport.Open(&transport.Config{Server: server.URL + "/prefix/"})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(); server.Close() })
	return conn
}

func TestDoSendsThePathQueryHeadersAndBodyAsTheyAre(t *testing.T) {
	conn := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		assert.Equal(t, "PUT", r.Method)
		assert.Equal(t, "/prefix/api/v1/names/a%2Fb?dryRun=All&limit=1&pretty=true", r.RequestURI)
		assert.Equal(t, "text/plain", r.Header.Get("Content-Type"))
		assert.Equal(t, "application/json", r.Header.Get("Accept"))
		assert.Regexp(t, `^anykind/\S+ \(\w+/\w+\)$`, r.Header.Get("User-Agent"))
		assert.Equal(t, "hello", string(body))
		_, _ = io.WriteString(w, "answer")
	})

	response, err := conn.Do(t.Context(), &transport.Request{
		Method: http.MethodPut,
		Path:   "/api/v1/names/a%2Fb?pretty=true",
		Query:  url.Values{"limit": {"1"}, "dryRun": {"All"}},
		Header: http.Header{"Content-Type": {"text/plain"}},
		Body:   []byte("hello"),
	})
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, "answer", string(body))
}

func TestDoRefusesAPathThatWouldNotArriveAsWritten(t *testing.T) {
	conn := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request left") })
	for _, path := range []string{"", "api/v1", "/api#fragment", "/api\n", "/%zz", "@127.0.0.2/api"} {
		_, err := conn.Do(t.Context(), &transport.Request{Path: path})
		require.ErrorContains(t, err, "the request's path", "path %q", path)
	}
}

func TestDoMakesAStatusErrorOfEveryRefusal(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"x\" not found","reason":"NotFound","code":404}`
	long := strings.Repeat("long ", 1000)
	for name, tc := range map[string]struct {
		code              int
		contentType, body string
		is                func(error) bool
		says              []string
	}{
		"a Status":           {404, "application/json", status, apierrors.IsNotFound, []string{`pods "x" not found`}},
		"a Status, no code":  {404, "application/json", `{"kind":"Status","reason":"NotFound","message":"m"}`, apierrors.IsNotFound, []string{"m"}},
		"a proxy's page":     {502, "text/html; charset=utf-8", "<html>\n  <b>Bad Gateway</b>", apierrors.IsInternalError, []string{"502 Bad Gateway", "<html> <b>Bad Gateway</b>", "does a proxy or a login page"}},
		"an empty body":      {403, "", "", apierrors.IsForbidden, []string{"403 Forbidden", "empty body"}},
		"JSON of no kind":    {401, "application/json", `{"error":"expired"}`, apierrors.IsUnauthorized, []string{"401 Unauthorized", "expired"}},
		"a Success Status":   {500, "application/json", `{"kind":"Status","status":"Success"}`, apierrors.IsInternalError, []string{"500 Internal Server Error"}},
		"a broken Status":    {409, "application/json", `{"kind":"Status","reason`, apierrors.IsConflict, []string{"409 Conflict"}},
		"a very long body":   {400, "text/plain", long, apierrors.IsBadRequest, []string{"long long", "…"}},
		"a body of bad UTF8": {404, "text/plain", "\xff\x00", apierrors.IsNotFound, []string{"404 Not Found", "�"}},
	} {
		t.Run(name, func(t *testing.T) {
			conn := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{tc.contentType}
				w.WriteHeader(tc.code)
				_, _ = io.WriteString(w, tc.body)
			})
			_, err := conn.Do(t.Context(), &transport.Request{Path: "/api/v1/pods/x?token=hidden"})

			var status *apierrors.StatusError
			require.ErrorAs(t, err, &status)
			assert.True(t, tc.is(err), "reason %s", status.ErrStatus.Reason)
			assert.EqualValues(t, tc.code, status.ErrStatus.Code)
			for _, says := range tc.says {
				assert.ErrorContains(t, err, says)
			}
			assert.Less(t, len(err.Error()), 600)
			assert.NotContains(t, err.Error(), "hidden", "a query stays out of errors")
		})
	}
}

func TestDoTriesAgainWhenTheServerSaysWhen(t *testing.T) {
	for name, tc := range map[string]struct {
		code       int
		retryAfter string
		attempts   int32
	}{
		"429":                     {429, "0", 3},
		"503":                     {503, "0", 3},
		"503 without Retry-After": {503, "", 1},
		"503 with a date":         {503, "Wed, 21 Oct 2026 07:28:00 GMT", 1},
		"503 for an hour":         {503, "3600", 1},
		"409":                     {409, "0", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var attempts atomic.Int32
			conn := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				assert.Equal(t, "body", string(body), "every attempt carries the body")
				if attempts.Add(1) < 3 {
					w.Header()["Retry-After"] = []string{tc.retryAfter}
					w.WriteHeader(tc.code)
				}
			})
			response, err := conn.Do(t.Context(), &transport.Request{Method: "POST", Path: "/api", Body: []byte("body")})
			assert.Equal(t, tc.attempts, attempts.Load())
			if tc.attempts > 1 {
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				return
			}
			var status *apierrors.StatusError
			require.ErrorAs(t, err, &status)
		})
	}
}

func TestDoReturnsTheRefusalWhenTheDeadlineComesBeforeTheRetry(t *testing.T) {
	conn := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "50")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := conn.Do(ctx, &transport.Request{Path: "/api"})
	assert.True(t, apierrors.IsTooManyRequests(err))
	seconds, ok := apierrors.SuggestsClientDelay(err)
	assert.True(t, ok)
	assert.Equal(t, 50, seconds)
}

func TestDoStopsWaitingToRetryWhenCancelled(t *testing.T) {
	answered := make(chan struct{})
	conn := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "50")
		w.WriteHeader(http.StatusTooManyRequests)
		close(answered)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the user left")
	go func() { <-answered; cancel(reason) }()
	_, err := conn.Do(ctx, &transport.Request{Path: "/api"})
	require.Error(t, err)
	require.ErrorIs(t, err, context.Canceled)
}

func TestDoNamesWhatCouldNotBeReachedButNotItsQuery(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	conn, err := transport.New(server.URL, nil, nil)
	require.NoError(t, err)
	_, err = conn.Do(t.Context(), &transport.Request{Path: "/api?token=hidden"})
	require.ErrorContains(t, err, "GET "+server.URL+"/api: ")
	require.ErrorContains(t, err, "connection refused")
	assert.NotContains(t, err.Error(), "hidden")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = conn.Do(ctx, &transport.Request{Path: "/api"})
	require.ErrorIs(t, err, context.Canceled)
}

func TestCredentialsDoNotFollowARedirectToAnotherHost(t *testing.T) {
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the stranger was asked")
	}))
	defer stranger.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "Bearer secret", r.Header.Get("Authorization"))
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, stranger.URL, http.StatusFound)
		case "/near":
			http.Redirect(w, r, "/here", http.StatusFound)
		}
	}))
	defer server.Close()
	conn, err := transport.Open(&transport.Config{Server: server.URL, Token: transport.NewSecret("secret")})
	require.NoError(t, err)
	defer conn.Close()

	_, err = conn.Do(t.Context(), &transport.Request{Path: "/away"})
	require.ErrorContains(t, err, "redirects to another host, "+stranger.URL)
	assert.NotContains(t, err.Error(), "secret")

	response, err := conn.Do(t.Context(), &transport.Request{Path: "/near"})
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, "/here", response.Request.URL.Path)
}
