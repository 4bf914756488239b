package cache

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/anykind/anykind/internal/sanitize"
)

// Health returns nil if the cache has synced and its stream is not interrupted. Otherwise it returns the reason: Run has not been
// called or has ended, the cache has not synced, an error interrupts the stream, the server does not serve the resource, the cache is
// staler than Options.MaxStaleness, or Options.Audit has found a difference. After an interruption the cache is healthy again as soon
// as the server has accepted the next request. After a difference it is healthy again once an audit has found none, a minute later at
// the earliest.
//
// If the server rejects only a part of Options.Namespaces, Health returns a *[RejectedError] until these namespaces have synced.
func (c *Cache[T]) Health() error {
	path := c.String() // not under the lock
	if isClosed(c.stopped) {
		return fmt.Errorf("cache %s: stopped: %w", path, c.err)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	rejected := c.joinErrors(rejection)
	interrupted := c.joinErrors(interruption)
	isSynced := c.synced && c.hasSettled()
	staleness, _ := c.staleness()
	switch {
	case !c.started.Load():
		return fmt.Errorf("cache %s: not synced: Run has not been called", path)
	case !isSynced && c.lastErr != nil:
		return fmt.Errorf("cache %s: not synced: last interruption: %w", path, c.lastErr)
	case !isSynced:
		return fmt.Errorf("cache %s: not synced", path)
	case interrupted != nil:
		return fmt.Errorf("cache %s: interrupted: %w", path, interrupted)
	case c.notServed:
		return fmt.Errorf("cache %s: the server does not serve the resource", path)
	case c.opts.MaxStaleness > 0 && staleness > c.opts.MaxStaleness:
		return fmt.Errorf("cache %s: stale: the last progress was %s ago", path, staleness)
	case len(c.audits.differences) > 0:
		return fmt.Errorf("cache %s: audit: %s", path, c.audits.String())
	case rejected != nil:
		return &RejectedError{path, rejected}
	default:
		return nil
	}
}

// maxHealthReason limits the text per cache, in bytes.
const maxHealthReason = 1 << 10

// HealthHandler returns a handler for readiness probes. Its status is 200 if every cache is healthy (see [Cache.Health]), and 503
// otherwise. The body has a line of printable text for each unhealthy cache, with paths and errors of the API server. A
// *[RejectedError] adds its line but keeps the status 200: the remaining namespaces work, and rights may be missing for long. Use
// the handler for readiness rather than liveness: a restart of the process does not end an interruption.
func HealthHandler(caches ...interface{ Health() error }) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		status := http.StatusOK
		var reasons []string
		for _, c := range caches {
			err := c.Health()
			if err == nil {
				continue
			}
			reasons = append(reasons, sanitize.Text(err.Error(), maxHealthReason))
			if _, isRejected := errors.AsType[*RejectedError](err); !isRejected {
				status = http.StatusServiceUnavailable
			}
		}
		if len(reasons) == 0 {
			reasons = []string{"ok"}
		}
		w.WriteHeader(status)
		for _, reason := range reasons {
			fmt.Fprintln(w, reason)
		}
	})
}
