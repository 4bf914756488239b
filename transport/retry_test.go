package transport_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// roundTripper is a round tripper without a network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// answer returns a response whose headers are name and value by turns.
func answer(req *http.Request, code int, body string, headers ...string) *http.Response {
	response := &http.Response{
		StatusCode: code, Status: http.StatusText(code), Header: http.Header{}, Request: req, Body: io.NopCloser(strings.NewReader(body)),
	}
	for i := 0; i+1 < len(headers); i += 2 {
		response.Header.Add(headers[i], headers[i+1])
	}
	return response
}

func TestConn_DoWaitsBetweenRetries(t *testing.T) {
	for _, retryAfter := range []string{"0", "2"} {
		synctest.Test(t, func(t *testing.T) {
			var posts []time.Time
			conn, err := transport.New("http://server", &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
				posts = append(posts, time.Now())
				return answer(req, http.StatusServiceUnavailable, "", "Retry-After", retryAfter), nil
			})}, nil)
			require.NoError(t, err)
			_, err = conn.Do(t.Context(), &transport.Request{Method: http.MethodPost, Path: "/x", Body: []byte("{}")})
			assert.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
			require.Len(t, posts, 11)
			least := 50 * time.Millisecond
			if retryAfter == "2" {
				least = 2 * time.Second
			}
			differ := map[time.Duration]bool{}
			for i := range posts[1:] {
				wait := posts[i+1].Sub(posts[i])
				assert.GreaterOrEqual(t, wait, least)
				assert.LessOrEqual(t, wait, 3*time.Second)
				differ[wait] = true
			}
			assert.Greater(t, len(differ), 5, "jitter")
			if retryAfter == "0" {
				assert.Greater(t, posts[10].Sub(posts[9]), time.Second-1, "the delay grows")
			}
		})
	}
}

func TestConn_DoReportsContextErrorAndCause(t *testing.T) {
	cause := errors.New("the user left")
	synctest.Test(t, func(t *testing.T) {
		conn, err := transport.New("http://server", &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		})}, nil)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		_, err = conn.Do(ctx, &transport.Request{Path: "/x"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, cause)
	})
}

func TestConn_DoBoundsDecompressedErrorBody(t *testing.T) {
	var bomb bytes.Buffer
	packed := gzip.NewWriter(&bomb)
	_, err := io.WriteString(packed, `{"kind":"Status","message":"`)
	require.NoError(t, err)
	for range 64 {
		_, err = packed.Write(bytes.Repeat([]byte("a"), 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, packed.Close())
	conn := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write(bomb.Bytes())
	})
	var before, after runtimeMemory
	before.read()
	_, err = conn.Do(t.Context(), &transport.Request{Path: "/x"})
	after.read()
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 2000)
	assert.Less(t, after.allocated-before.allocated, uint64(32<<20))
}

func TestConn_DoEscapesTerminalControl(t *testing.T) {
	for name, body := range map[string]string{
		"a Status": `{"kind":"Status","status":"Failure","code":403,"reason":"Forbidden","message":"no\u001b]0;title\u0007\nsecond line\u202e` +
			strings.Repeat("x", 40<<10) + `","details":{"causes":[{"message":"a\u001b[2J"}]}}`,
		"no Status": "<html>\x1b[2J\x9b\u202e" + strings.Repeat("x", 40<<10),
	} {
		t.Run(name, func(t *testing.T) {
			conn := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, body)
			})
			_, err := conn.Do(t.Context(), &transport.Request{Path: "/x"})
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			assert.NotContains(t, err.Error(), "\n")
			assert.NotRegexp(t, `[\x00-\x1f\x7f-\x9f\x{202e}]`, err.Error())
			assert.Less(t, len(err.Error()), 17<<10)
			var status apierrors.APIStatus
			require.ErrorAs(t, err, &status)
			for _, cause := range status.Status().Details.Causes {
				assert.NotContains(t, cause.Message, "\x1b")
			}
		})
	}
}

func TestConn_DoEscapesProxysStatusLine(t *testing.T) {
	conn, err := transport.New("http://server", &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, errors.Join(errors.New("go \x1b[2J away"), io.ErrNoProgress)
	})}, nil)
	require.NoError(t, err)
	_, err = conn.Do(t.Context(), &transport.Request{Path: "/x"})
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.ErrorContains(t, err, `go away`)
}

func TestCollectWarnings_NestedInformsOuter(t *testing.T) {
	var warned []string
	options := &transport.Options{Warn: func(_ context.Context, text string) { warned = append(warned, text) }, WarnRepeated: true}
	conn, err := transport.New("http://server", &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		return answer(req, http.StatusOK, "", "Warning", `299 - "`+req.URL.Query().Get("text")+`"`), nil
	})}, options)
	require.NoError(t, err)
	outerCtx, outer := transport.CollectWarnings(t.Context())
	innerCtx, inner := transport.CollectWarnings(outerCtx)
	for _, call := range []struct {
		ctx  context.Context
		text string
	}{{outerCtx, "first"}, {innerCtx, "second"}, {innerCtx, "second"}} {
		response, err := conn.Do(call.ctx, &transport.Request{Path: "/x?text=" + call.text})
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	assert.Equal(t, []string{"first", "second"}, outer.All())
	assert.Equal(t, []string{"second"}, inner.All())
	assert.Equal(t, []string{"first", "second", "second"}, warned, "WarnRepeated")
}

func TestCollectWarnings_Bounded(t *testing.T) {
	conn, err := transport.New("http://server", &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		return answer(req, http.StatusOK, "", "Warning", `299 - "`+req.URL.Query().Get("n")+strings.Repeat("w", 8<<10)+`"`), nil
	})}, nil)
	require.NoError(t, err)
	ctx, warnings := transport.CollectWarnings(t.Context())
	for n := range 1100 {
		response, err := conn.Do(ctx, &transport.Request{Path: "/x?n=" + strings.Repeat("a", n/26) + string(rune('a'+n%26))})
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	assert.Len(t, warnings.All(), 1000)
	for _, text := range warnings.All() {
		assert.Less(t, len(text), 5<<10)
	}
}
