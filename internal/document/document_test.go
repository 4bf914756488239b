package document

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/scripted"
)

func TestGet(t *testing.T) {
	server := scripted.New("")
	server.Handle("GET /text", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"a"`)
		if r.Header.Get("If-None-Match") == `"a"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		scripted.JSON(`{"a":1}`)(w, r)
	})
	server.Handle("GET /hang", scripted.Hang)
	conn := scripted.Connect(t, server, nil)
	doc, err := Get(t.Context(), conn, "/text", nil, 7)
	require.NoError(t, err)
	assert.Equal(t, &Document{Body: []byte(`{"a":1}`), ContentType: "application/json", ETag: `"a"`}, doc)

	doc, err = Get(t.Context(), conn, "/text", http.Header{"If-None-Match": {`"a"`}}, 7)
	require.NoError(t, err)
	assert.True(t, doc.NotModified)

	_, err = Get(t.Context(), conn, "/text", nil, 6)
	assert.EqualError(t, err, "GET /text: read the body: longer than 6 bytes")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(assert.AnError)
	_, err = Get(ctx, conn, "/hang", nil, 6)
	assert.ErrorIs(t, err, assert.AnError)
}
