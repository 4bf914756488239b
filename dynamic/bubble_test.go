package dynamic_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/require"
)

// bubble is a scripted server without a network, for tests on synctest's clock.
type bubble struct{ *exchanges }

func (b bubble) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/api" || r.URL.Path == "/apis" {
		w := httptest.NewRecorder()
		(&wire{}).ServeHTTP(w, r)
		return w.Result(), nil
	}
	next := b.next(r)
	if next.mute {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	if next.status == 0 {
		next.status = http.StatusOK
	}
	body := io.Reader(strings.NewReader(next.body))
	if next.stays || next.then != "" {
		body = io.MultiReader(body, &lasting{ctx: r.Context(), then: next.then, after: next.after})
	}
	return &http.Response{StatusCode: next.status, Header: http.Header{}, Body: io.NopCloser(body), Request: r}, nil
}

// lasting is the rest of a body that does not end before the client leaves.
type lasting struct {
	ctx   context.Context
	then  string
	after time.Duration
}

func (l *lasting) Read(p []byte) (int, error) {
	var tick <-chan time.Time
	if l.then != "" {
		tick = time.After(l.after)
	}
	select {
	case <-tick:
		return copy(p, l.then), nil
	case <-l.ctx.Done():
		return 0, l.ctx.Err()
	}
}

// inBubble gives the pods of a scripted server, in the namespace "home", to a test in a synctest bubble.
func inBubble(t *testing.T, answers ...answer) (*dynamic.Resource, *exchanges) {
	t.Helper()
	server := &exchanges{answers: answers}
	conn, err := transport.New("http://bubble", &http.Client{Transport: bubble{server}}, &transport.Options{Namespace: "home"})
	require.NoError(t, err)
	client := dynamic.New(conn, nil)
	t.Cleanup(client.Close)
	return resource(t, client, "pods"), server
}
