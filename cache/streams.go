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
	stalled         error // interrupted or rejected, once no write is waited for
}

// maxInterruption is how long writes are waited for while a stream cannot be resumed.
const maxInterruption = 10 * time.Second

func (s *streamState) interrupt(err error) {
	if s.interrupted == nil {
		s.interruptedAt = time.Now()
	}
	s.interrupted = err
	if time.Since(s.interruptedAt) >= maxInterruption {
		s.stalled = err
	}
}

// progress records a resourceVersion, and returns whether it is lower than the last one.
func (s *streamState) progress(resourceVersion string) (isRestored bool) {
	isRestored = isNewer(s.resourceVersion, resourceVersion)
	if isRestored {
		s.restores++
	}
	s.resourceVersion, s.interrupted, s.stalled = resourceVersion, nil, nil
	return isRestored
}

// streamOf returns the key of streams for the objects of a namespace. It has no entry if the cache does not follow the namespace.
func (c *Cache[T]) streamOf(namespace string) string {
	if len(c.opts.Namespaces) == 0 {
		return ""
	}
	return namespace
}

// setResourceVersion records the version of a stream, which is no longer interrupted, and wakes the waiters that it
// satisfies. It may be lower than the last one, after a restore of etcd from a backup.
func (c *Cache[T]) setResourceVersion(stream, resourceVersion string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[stream].progress(resourceVersion) {
		c.forgetWrites(stream)
	}
	c.wakeWaiters()
}

// setSynced records that a stream has had all initial objects.
func (c *Cache[T]) setSynced(stream string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[stream].synced = true
	c.wakeWaiters()
}

// setRejected records why a namespace is rejected, nil if it is not.
func (c *Cache[T]) setRejected(namespace string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stream := c.streams[namespace]
	if err == nil && stream.rejected == nil {
		return
	}
	stream.rejected, stream.stalled = err, err
	c.wakeWaiters()
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
