package cache

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anykind/anykind/internal/resourceversion"
)

// streamState is the state of a stream: the partitions of a namespace, or the cache's single stream. Run's goroutine writes it, under the
// cache's lock.
type streamState struct {
	resourceVersion string // "" before the initial list
	restores        int    // decreases of resourceVersion
	synced          bool   // since the first Synced
	listing         bool   // some of its objects have not been listed yet, and will be
	unlisted        bool   // some of its objects have not been listed yet
	rejected        error  // until the next Follow; see Options.Namespaces
	interrupted     error  // error of the current interruption
	interruptedAt   time.Time
	progressed      progressTime
}

// maxInterruption is the longest interruption of a stream during which writes are awaited.
const maxInterruption = 10 * time.Second

// stalled returns an error if the stream is rejected, or interrupted for at least maxInterruption. Writes are not awaited then.
func (s *streamState) stalled() error {
	if s.rejected == nil && time.Since(s.interruptedAt) >= maxInterruption {
		return s.interrupted
	}
	return s.rejected
}

// streamOf returns the key of c.streams for the objects of a namespace. There is no entry if the cache does not follow the
// namespace.
func (c *Cache[T]) streamOf(namespace string) string {
	if c.opts.Namespaces == nil {
		return ""
	}
	return namespace
}

// setStream records the state of the partitions of a namespace. Without partitions it has no stream.
func (c *Cache[T]) setStream(namespace string, exists bool, current streamState, isRestored bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[namespace]
	switch {
	case !exists:
		delete(c.streams, namespace)
		c.waiters.evaluateAll()
		return
	case s == nil:
		s = &streamState{}
		c.streams[namespace] = s
	}
	last := *s
	s.resourceVersion = current.resourceVersion
	s.synced = last.synced || current.synced
	s.listing = current.listing || s.synced && current.unlisted // after the first list no rejection is final
	s.rejected = current.rejected
	s.interrupted = current.interrupted
	s.progressed = current.progressed
	isSame := s.synced == last.synced && s.listing == last.listing && s.rejected == last.rejected //nolint:errorlint // the same error
	switch {
	case isRestored:
		s.restores++
		c.forgetWrites(namespace)
	case isSame && isReached(s.resourceVersion, last.resourceVersion):
		c.waiters.evaluateReached(namespace, s.resourceVersion)
		return
	default:
	}
	c.waiters.evaluateAll()
}

// setResourceVersion records the resourceVersion of a stream, ends its interruption, and evaluates the waiters. The
// resourceVersion may decrease after a restore of etcd from a backup.
func (c *Cache[T]) setResourceVersion(stream, resourceVersion string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[stream]
	last := s.resourceVersion
	s.resourceVersion = resourceVersion
	s.interrupted = nil
	s.progressed.record(last, resourceVersion)
	switch {
	case isReached(resourceVersion, last):
		c.waiters.evaluateReached(stream, resourceVersion)
		return
	case resourceversion.IsNewer(last, resourceVersion):
		s.restores++
		c.forgetWrites(stream)
	default: // the first version, or not comparable
	}
	c.waiters.evaluateAll()
}

// setInterrupted records an interruption of a stream, and evaluates the waiters after maxInterruption.
func (c *Cache[T]) setInterrupted(stream string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastErr = err
	s := c.streams[stream]
	s.progressed.isResuming = true
	if err == nil {
		return
	}
	if s.interrupted == nil {
		s.interruptedAt = time.Now()
		time.AfterFunc(maxInterruption, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.waiters.evaluateAll()
		})
	}
	s.interrupted = err
}

// isListing reports whether objects of the scope have not been listed yet. Callers hold the lock.
func (c *Cache[T]) isListing() bool {
	for _, stream := range c.streams {
		if stream.listing {
			return true
		}
	}
	return c.scope.isNew
}

// hasSettled reports whether at least one stream has synced and the rest have synced or are rejected. Callers hold the lock or
// run in Run's goroutine.
func (c *Cache[T]) hasSettled() (settled bool) {
	settled = len(c.streams) == 0
	for _, stream := range c.streams {
		if !stream.synced && stream.rejected == nil {
			return false
		}
		settled = settled || stream.synced
	}
	return settled
}

// RejectedError reports the rejection of a part of Options.Namespaces. The cache has the remaining namespaces.
type RejectedError struct {
	// Cache is the path of the cache's resource.
	Cache string
	// Err is the error of a namespace, or the joined errors of several.
	Err error
}

func (e *RejectedError) Error() string { return fmt.Sprintf("cache %s: rejected: %v", e.Cache, e.Err) }

// Unwrap returns Err.
func (e *RejectedError) Unwrap() error { return e.Err }

// joinErrors joins the errors of the streams into a single line, or returns nil.
func (c *Cache[T]) joinErrors(errorOf func(*streamState) error) (joined error) {
	for _, namespace := range slices.Sorted(maps.Keys(c.streams)) {
		err := errorOf(c.streams[namespace])
		if joined != nil && err != nil {
			err = fmt.Errorf("%w; %w", joined, err)
		}
		if err != nil {
			joined = err
		}
	}
	return joined
}

func rejection(s *streamState) error { return s.rejected }

// interruption returns the error of an interruption, or nil for a rejected stream.
func interruption(s *streamState) error {
	if s.rejected == nil {
		return s.interrupted
	}
	return nil
}
