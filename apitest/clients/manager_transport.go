package clients

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// repeatableTransport removes the randomness of client-go's reflectors from their requests: the timeout of a watch, and the delay of
// the next request after a failed list or an ended watch. A reflector waits for 0.8 to 1.6 seconds, then for 1.6 to 3.2, up to 60
// seconds. The transport extends each delay to its upper bound.
type repeatableTransport struct {
	base http.RoundTripper

	mu    sync.Mutex
	ended map[string]time.Time // the last failure of a list or end of a watch, by path and selectors
}

const (
	watchTimeout    = "600" // seconds
	minRelistDelay  = 1600 * time.Millisecond
	lastRelistBound = 25600 * time.Millisecond
	maxRelistDelay  = time.Minute
)

func newRepeatableTransport(base http.RoundTripper) *repeatableTransport {
	return &repeatableTransport{base: base, ended: map[string]time.Time{}}
}

// RoundTrip implements http.RoundTripper.
func (r *repeatableTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	key := req.URL.Path + "?" + query.Get("labelSelector") + "&" + query.Get("fieldSelector")
	if err := r.wait(req.Context(), key); err != nil {
		return nil, err
	}
	isWatch := query.Get("watch") == "true" || query.Get("watch") == "1"
	if isWatch {
		query.Set("timeoutSeconds", watchTimeout)
		req = req.Clone(req.Context())
		req.URL.RawQuery = query.Encode()
	}
	response, err := r.base.RoundTrip(req)
	if err != nil || response.StatusCode != http.StatusOK {
		r.end(key)
		return response, err
	}
	if isWatch {
		response.Body = &endingBody{ReadCloser: response.Body, onEnd: sync.OnceFunc(func() { r.end(key) })}
	}
	return response, nil
}

// end records a failed list or an ended watch.
func (r *repeatableTransport) end(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[key] = time.Now()
}

// wait extends the delay of a reflector after end.
func (r *repeatableTransport) wait(ctx context.Context, key string) error {
	r.mu.Lock()
	at, hasEnded := r.ended[key]
	delete(r.ended, key)
	r.mu.Unlock()
	if !hasEnded {
		return nil
	}
	bound := minRelistDelay
	for bound < min(time.Since(at), maxRelistDelay) {
		if bound *= 2; bound > lastRelistBound {
			bound = maxRelistDelay
		}
	}
	timer := time.NewTimer(time.Until(at.Add(bound)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// endingBody reports the end of a watch.
type endingBody struct {
	io.ReadCloser
	onEnd func()
}

// Read implements io.Reader.
func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.onEnd()
	}
	return n, err
}
