package cache

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// streamState is the state of one stream of a cache: that of a namespace of Options.Namespaces, or the only one. It is written by
// Run's goroutine, under the cache's lock.
type streamState struct {
	resourceVersion string // "" before the initial list
	restores        int    // how often resourceVersion has become lower
	synced          bool   // since the first Synced
	rejected        error  // why it is followed again later; see Options.Namespaces
	interrupted     error  // of an interruption that has not ended
	interruptedAt   time.Time
}

// maxInterruption is how long writes are waited for while a stream cannot be resumed.
const maxInterruption = 10 * time.Second

// stalled returns an error if writes to the stream are not waited for: it is rejected, or interrupted for maxInterruption.
func (s *streamState) stalled() error {
	if s.rejected == nil && time.Since(s.interruptedAt) >= maxInterruption {
		return s.interrupted
	}
	return s.rejected
}

// streamOf returns the key of streams for the objects of a namespace. It has no entry if the cache does not follow the namespace.
func (c *Cache[T]) streamOf(namespace string) string {
	if len(c.opts.Namespaces) == 0 {
		return ""
	}
	return namespace
}

// setResourceVersion records the version of a stream, which is no longer interrupted, and evaluates the waiters. The version may be
// lower than the last one, after a restore of etcd from a backup.
func (c *Cache[T]) setResourceVersion(stream, resourceVersion string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[stream]
	last := s.resourceVersion
	s.resourceVersion = resourceVersion
	s.interrupted = nil
	switch {
	case isReached(resourceVersion, last):
		c.waiters.evaluateReached(stream, resourceVersion)
		return
	case isNewer(last, resourceVersion):
		s.restores++
		c.forgetWrites(stream)
	default: // the first version, or one without an order
	}
	c.waiters.evaluateAll()
}

// setInterrupted records an interruption of a stream, and evaluates the waiters once it has stalled.
func (c *Cache[T]) setInterrupted(stream string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastErr = err
	if err == nil {
		return
	}
	s := c.streams[stream]
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

// setSynced records that a stream has had all initial objects.
func (c *Cache[T]) setSynced(stream string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[stream].synced = true
	c.waiters.evaluateAll()
}

// setRejected records why a namespace is rejected, nil if it is not.
func (c *Cache[T]) setRejected(namespace string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stream := c.streams[namespace]
	if err == nil && stream.rejected == nil {
		return
	}
	stream.rejected = err
	c.waiters.evaluateAll()
}

// hasSettled reports whether a namespace has synced and all others have synced or are rejected. It is called under the lock or by
// Run's goroutine.
func (c *Cache[T]) hasSettled() (settled bool) {
	for _, stream := range c.streams {
		if !stream.synced && stream.rejected == nil {
			return false
		}
		settled = settled || stream.synced
	}
	return settled
}

// RejectedError reports that the server rejects some of Options.Namespaces. The cache has the others.
type RejectedError struct {
	// Cache is the path of the cache's resource.
	Cache string
	// Err is the error of a namespace, or the errors of several.
	Err error
}

func (e *RejectedError) Error() string { return fmt.Sprintf("cache %s: rejected: %v", e.Cache, e.Err) }

// Unwrap returns Err.
func (e *RejectedError) Unwrap() error { return e.Err }

// joinErrors returns the errors of several streams as one, in one line; nil for none.
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

// interruption returns the error of an interruption, nil for a rejected stream.
func interruption(s *streamState) error {
	if s.rejected != nil {
		return nil
	}
	return s.interrupted
}
