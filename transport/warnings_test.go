package transport_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport"
)

func TestOptions_OnWarningOnce(t *testing.T) {
	var texts []string
	conn := serveWith(t, transport.Options{OnWarning: func(_ context.Context, text string) { texts = append(texts, text) }},
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Add("Warning", `299 - "unknown field \"spec.foo\""`)
			w.Header().Add("Warning", `299 - "unknown field \"spec.foo\""`)
			w.Header().Add("Warning", `110 - "stale"`)
			w.Header().Add("Warning", `broken`)
			if r.URL.Path == "/prefix/old" {
				w.Header().Add("Warning", `299 - "v1beta1 is deprecated"`)
				w.WriteHeader(http.StatusConflict)
			}
		})
	const unknown, deprecated = `unknown field "spec.foo"`, "v1beta1 is deprecated"
	first, warnings := transport.CollectWarnings(t.Context())
	response, err := conn.Do(first, &transport.Request{Path: "/new"})
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, []string{unknown}, warnings.All())

	second, warnings := transport.CollectWarnings(t.Context())
	_, err = conn.Do(second, &transport.Request{Path: "/old"})
	require.Error(t, err, "a refusal may carry warnings, too")
	assert.Equal(t, []string{unknown, deprecated}, warnings.All())
	assert.Equal(t, []string{unknown, deprecated}, texts)
}

func TestCollectWarnings_Nested(t *testing.T) {
	var warned []string
	options := &transport.Options{OnWarning: func(_ context.Context, text string) { warned = append(warned, text) }, RepeatWarnings: true}
	conn, err := transport.New("http://server", &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		return newResponse(req, http.StatusOK, "", "Warning", `299 - "`+req.URL.Query().Get("text")+`"`), nil
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
		return newResponse(req, http.StatusOK, "", "Warning", `299 - "`+req.URL.Query().Get("n")+strings.Repeat("w", 8<<10)+`"`), nil
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
