package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// serve returns a Conn to a server that responds with handler, under a path, as behind a proxy.
func serve(t *testing.T, handler http.HandlerFunc) *transport.Conn {
	t.Helper()
	server := httptest.NewServer(handler)
	conn, err := transport.Open(&transport.Config{Server: server.URL + "/prefix/"})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(); server.Close() })
	return conn
}

func TestConn_DoSendsRequestUnchanged(t *testing.T) {
	conn := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		assert.Equal(t, "PUT", r.Method)
		assert.Equal(t, "/prefix/api/v1/names/a%2Fb?dryRun=All&limit=1&pretty=true", r.RequestURI)
		assert.Equal(t, "text/plain", r.Header.Get("Content-Type"))
		assert.Equal(t, "application/json", r.Header.Get("Accept"))
		assert.Regexp(t, `^anykind/\S+ \(\w+/\w+\)$`, r.Header.Get("User-Agent"))
		assert.Equal(t, "hello", string(body))
		_, _ = io.WriteString(w, "response")
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
	assert.Equal(t, "response", string(body))
}

func TestConn_DoRejectsInvalidPath(t *testing.T) {
	conn := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request left") })
	for _, path := range []string{"", "api/v1", "/api#fragment", "/api/v1/pods/#", "/api\n", "/%zz", "@127.0.0.2/api", "?token=hidden", "api?token=hidden", "/api?token=hidden#x", "/api?token=hidden\n"} {
		_, err := conn.Do(t.Context(), &transport.Request{Path: path})
		require.ErrorContains(t, err, "request path", "path %q", path)
		assert.NotContains(t, err.Error(), "hidden")
	}
}

func TestConn_DoReturnsStatusErrors(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"x\" not found","reason":"NotFound","code":404}`
	long := strings.Repeat("long ", 1000)
	failure := &metav1.Status{Status: metav1.StatusFailure, Message: `pods "x" not found`, Reason: metav1.StatusReasonNotFound, Code: 404}
	raw, err := failure.Marshal()
	require.NoError(t, err)
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Status"}, Raw: raw}
	message, err := envelope.Marshal()
	require.NoError(t, err)
	protobuf := "k8s\x00" + string(message)
	for name, tc := range map[string]struct {
		code              int
		contentType, body string
		is                func(error) bool
		want              []string
	}{
		"a Status":           {404, "application/json", status, apierrors.IsNotFound, []string{`pods "x" not found`}},
		"a Status, no code":  {404, "application/json", `{"kind":"Status","reason":"NotFound","message":"m"}`, apierrors.IsNotFound, []string{"m"}},
		"a Status, protobuf": {404, runtime.ContentTypeProtobuf, protobuf, apierrors.IsNotFound, []string{`pods "x" not found`}},
		"broken protobuf":    {404, runtime.ContentTypeProtobuf, protobuf[:len(protobuf)/2], apierrors.IsNotFound, []string{"404 Not Found", "protobuf"}},
		"a proxy's page":     {502, "text/html; charset=utf-8", "<html>\n  <b>Bad Gateway</b>", apierrors.IsInternalError, []string{"502 Bad Gateway", "<html> <b>Bad Gateway</b>", "is a proxy or a login page"}},
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
			for _, want := range tc.want {
				assert.ErrorContains(t, err, want)
			}
			assert.Less(t, len(err.Error()), 600)
			assert.NotContains(t, err.Error(), "hidden", "a query stays out of errors")
		})
	}
}

func TestConn_DoObeysRetryAfter(t *testing.T) {
	for name, tc := range map[string]struct {
		method     string
		code       int
		retryAfter string
		attempts   int32
	}{
		"POST: 429":                     {"POST", 429, "0", 3},
		"POST: 503":                     {"POST", 503, "0", 3},
		"POST: 503 without Retry-After": {"POST", 503, "", 1},
		"POST: 503 with a date":         {"POST", 503, "Wed, 21 Oct 2026 07:28:00 GMT", 1},
		"POST: 503 for an hour":         {"POST", 503, "3600", 1},
		"POST: 409":                     {"POST", 409, "0", 1},
		"POST: 500, maybe executed":     {"POST", 500, "0", 1},
		"POST: 502, maybe executed":     {"POST", 502, "0", 1},
		"POST: 504, maybe executed":     {"POST", 504, "0", 1},
		"PATCH: 504, maybe executed":    {"PATCH", 504, "0", 1},
		"GET: 500":                      {"", 500, "0", 3},
		"GET: 504":                      {"", 504, "0", 3},
		"HEAD: 502":                     {"HEAD", 502, "0", 3},
		"GET: 409":                      {"", 409, "0", 1},
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
			response, err := conn.Do(t.Context(), &transport.Request{Method: tc.method, Path: "/api", Body: []byte("body")})
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

func TestConn_DoReturnsErrorIfDeadlineBeforeRetry(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"before Retry-After": 20 * time.Second, "before its jitter": 55 * time.Second} {
		t.Run(name, func(t *testing.T) {
			conn := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "50")
				w.WriteHeader(http.StatusTooManyRequests)
			})
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			ctx = retry.WithRandom(ctx, func(limit time.Duration) time.Duration { return limit }, nil)
			_, err := conn.Do(ctx, &transport.Request{Path: "/api"})
			assert.True(t, apierrors.IsTooManyRequests(err))
			seconds, ok := apierrors.SuggestsClientDelay(err)
			assert.True(t, ok)
			assert.Equal(t, 50, seconds)
		})
	}
}

func TestConn_DoCanceledBeforeRetry(t *testing.T) {
	responded := make(chan struct{})
	conn := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "50")
		w.WriteHeader(http.StatusTooManyRequests)
		close(responded)
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the user left")
	go func() { <-responded; cancel(reason) }()
	_, err := conn.Do(ctx, &transport.Request{Path: "/api"})
	require.Error(t, err)
	require.ErrorIs(t, err, context.Canceled)
}

func TestConn_DoErrorHasURLWithoutQuery(t *testing.T) {
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

func TestConn_DoRedirects(t *testing.T) {
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
	conn, err := transport.Open(&transport.Config{Server: server.URL, Token: kubeconfig.NewSecret("secret")})
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

// serveWith is serve with options.
func serveWith(t *testing.T, opts transport.Options, handler http.HandlerFunc) *transport.Conn {
	t.Helper()
	server := httptest.NewServer(handler)
	conn, err := transport.Open(&transport.Config{Server: server.URL + "/prefix/", Token: kubeconfig.NewSecret("s3cret"), Options: opts})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(); server.Close() })
	return conn
}

func do(t *testing.T, conn *transport.Conn, req *transport.Request) error {
	t.Helper()
	response, err := conn.Do(t.Context(), req)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func TestOptions_OnAttemptReportsRequestInfo(t *testing.T) {
	var seen []string
	conn := serveWith(t, transport.Options{OnAttempt: func(_ context.Context, a transport.Attempt) {
		seen = append(seen, fmt.Sprintf("%s %s %s/%s", a.Verb, a.Resource, a.Namespace, a.Name))
		assert.Equal(t, 200, a.StatusCode)
		assert.Equal(t, 1, a.Number)
		assert.NotContains(t, a.URL, "?")
		assert.True(t, strings.HasSuffix(a.URL, "/prefix"+a.Path), a.URL)
		assert.True(t, strings.HasPrefix(a.Path, "/"), a.Path)
	}}, func(http.ResponseWriter, *http.Request) {})
	for _, tc := range []struct{ method, path, want string }{
		{"GET", "/api/v1/pods", "list pods /"},
		{"HEAD", "/api/v1/pods", "list pods /"},
		{"GET", "/api/v1/pods?watch=1", "watch pods /"},
		{"GET", "/api/v1/pods?watch", "watch pods /"},
		{"GET", "/api/v1/pods?watch=False", "list pods /"},
		{"GET", "/api/v1/pods?watch=0", "list pods /"},
		{"GET", "/apis/apps/v1/namespaces/shop/deployments?watch=true", "watch deployments.apps shop/"},
		{"GET", "/apis/apps/v1/namespaces/shop/deployments/web", "get deployments.apps shop/web"},
		{"HEAD", "/apis/apps/v1/namespaces/shop/deployments/web", "get deployments.apps shop/web"},
		{"GET", "/apis/apps/v1/namespaces/shop/deployments/web?watch=true", "get deployments.apps shop/web"},
		{"GET", "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dweb", "list pods shop/web"},
		{"GET", "/api/v1/namespaces/shop/pods?fieldSelector=a%3Db,metadata.name%3D%3Dweb&watch=true", "watch pods shop/web"},
		{"GET", "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name!%3Dweb", "list pods shop/"},
		{"GET", "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3D..", "list pods shop/"},
		{"GET", "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name", "list pods shop/"},
		{"DELETE", "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dweb", "deletecollection pods shop/"},
		{"GET", "/api/v1/watch/namespaces/shop/pods", "watch pods shop/"},
		{"GET", "/api/v1/watch/namespaces/shop/pods/web", "watch pods shop/web"},
		{"GET", "/api/v1/namespaces/shop/pods/web/log", "get pods/log shop/web"},
		{"GET", "/api/v1/namespaces/shop/services/web/proxy/a/b", "get services/proxy shop/web"},
		{"OPTIONS", "/api/v1/namespaces/shop/services/web/proxy/", "options services/proxy shop/web"},
		{"POST", "/api/v1/namespaces/shop/pods", "create pods shop/"},
		{"POST", "/api/v1/namespaces/shop/pods/web/eviction", "create pods/eviction shop/web"},
		{"PUT", "/apis/apps/v1/namespaces/shop/deployments/web/scale", "update deployments.apps/scale shop/web"},
		{"PATCH", "/api/v1/nodes/n1", "patch nodes /n1"},
		{"DELETE", "/api/v1/namespaces/shop/pods/web", "delete pods shop/web"},
		{"DELETE", "/api/v1/namespaces/shop/pods", "deletecollection pods shop/"},
		{"GET", "/api/v1/namespaces", "list namespaces /"},
		{"GET", "/api/v1/namespaces/shop", "get namespaces shop/shop"},
		{"PUT", "/api/v1/namespaces/shop/finalize", "update namespaces/finalize shop/shop"},
		{"GET", "/api/v1/namespaces/shop/status", "get namespaces/status shop/shop"},
		{"GET", "/version", "get  /"},
		{"GET", "/apis", "get  /"},
		{"GET", "/api/v1", "get  /"},
		{"HEAD", "/apis/apps/v1", "head  /"},
	} {
		seen = nil
		require.NoError(t, do(t, conn, &transport.Request{Method: tc.method, Path: tc.path}))
		assert.Equal(t, []string{tc.want}, seen, "%s %s", tc.method, tc.path)
	}
}

func TestOptions_OnAttemptReportsRetriesAndDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []transport.Attempt
		asked := 0
		conn, err := transport.New("http://server", &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
			if asked++; asked == 1 {
				return newResponse(req, http.StatusTooManyRequests, "", "Retry-After", "1"), nil
			}
			return newResponse(req, http.StatusOK, ""), req.Context().Err()
		})}, &transport.Options{OnAttempt: func(_ context.Context, a transport.Attempt) { attempts = append(attempts, a) }})
		require.NoError(t, err)
		require.NoError(t, do(t, conn, &transport.Request{Path: "/api/v1/pods?labelSelector=s3cret"}))
		require.Len(t, attempts, 2)
		assert.Equal(t, []int{429, 200}, []int{attempts[0].StatusCode, attempts[1].StatusCode})
		assert.Equal(t, []int{1, 2}, []int{attempts[0].Number, attempts[1].Number})
		assert.Zero(t, attempts[0].Delay)
		assert.GreaterOrEqual(t, attempts[1].Delay, time.Second)
		assert.NotContains(t, fmt.Sprintf("%+v", attempts), "s3cret")

		attempts = nil
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = conn.Do(ctx, &transport.Request{Path: "/api"})
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, attempts, 1)
		assert.Zero(t, attempts[0].StatusCode)
		require.ErrorIs(t, attempts[0].Err, context.Canceled)
	})
}

// limiter is a RateLimiter that fails after some calls.
type limiter struct{ left int }

func (l *limiter) Wait(context.Context) error {
	if l.left--; l.left < 0 {
		return errors.New("no turns left")
	}
	return nil
}

func TestOptions_RateLimiterBeforeEveryAttempt(t *testing.T) {
	limiter := &limiter{left: 2}
	var asked atomic.Int32
	conn := serveWith(t, transport.Options{RateLimiter: limiter}, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	err := do(t, conn, &transport.Request{Path: "/api?token=s3cret"})
	require.ErrorContains(t, err, "wait for the rate limiter: no turns left")
	assert.NotContains(t, err.Error(), "s3cret")
	assert.EqualValues(t, 2, asked.Load())
}

// ctxLimiter is a RateLimiter that waits for the end of ctx, like *rate.Limiter.
type ctxLimiter struct{ cancel func() }

func (l ctxLimiter) Wait(ctx context.Context) error {
	l.cancel()
	<-ctx.Done()
	return ctx.Err()
}

func TestOptions_RateLimiterErrorHasCause(t *testing.T) {
	cause := errors.New("not the leader any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	conn := serveWith(t, transport.Options{RateLimiter: ctxLimiter{func() { cancel(cause) }}}, func(http.ResponseWriter, *http.Request) {})
	_, err := conn.Do(ctx, &transport.Request{Path: "/api"})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, cause)
	assert.ErrorContains(t, err, "wait for the rate limiter")
}

// inspector wraps a round tripper and looks at its requests.
type inspector struct {
	http.RoundTripper
	look func(*http.Request)
}

func (s inspector) RoundTrip(req *http.Request) (*http.Response, error) {
	s.look(req)
	return s.RoundTripper.RoundTrip(req)
}

func TestOptions_WrapTransportWithoutCredentials(t *testing.T) {
	var seen, arrived int
	conn := serveWith(t, transport.Options{WrapTransport: func(next http.RoundTripper) http.RoundTripper {
		return inspector{next, func(req *http.Request) {
			seen++
			assert.NotContains(t, fmt.Sprint(req.Header), "s3cret")
			req.Header.Set("Traceparent", "00-1-2-03")
		}}
	}}, func(_ http.ResponseWriter, r *http.Request) {
		arrived++
		assert.Equal(t, "Bearer s3cret", r.Header.Get("Authorization"))
		assert.Equal(t, "00-1-2-03", r.Header.Get("Traceparent"))
	})
	require.NoError(t, do(t, conn, &transport.Request{Path: "/api"}))
	assert.Equal(t, []int{1, 1}, []int{seen, arrived})
}
