package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"k8s.io/apimachinery/pkg/watch"
)

// With Options.Namespaces, a goroutine for each namespace follows it and sends what it gets to Run's goroutine, which alone
// changes the cache. A Follow that ends with an error is started again. It emits every object again but not the deletions
// that it has missed: objects that the new initial list lacks are removed when it is complete.

// namespaceBackoff is the delay before a namespace that the server has rejected is followed again.
func namespaceBackoff() retry.Backoff {
	return retry.Backoff{Min: 2 * time.Second, Max: time.Minute}
}

// namespaceEvent is one event of the stream of a namespace: a change, a version, an interruption, or the end of a Follow.
type namespaceEvent[T any] struct {
	namespace    string
	change       dynamic.Change[T]
	version      string
	interruption *dynamic.Interruption
	ended        error
	retryAfter   time.Duration // of ended
}

// namespaceStream is the state of the stream of a namespace, owned by Run's goroutine.
type namespaceStream struct {
	synced, notServed bool
	rejections        int
	// received has the keys of a repeated initial list; nil for none.
	received map[Key]struct{}
}

// follows reports whether the cache may have objects of a namespace.
func (c *Cache[T]) follows(namespace string) bool {
	return len(c.namespaces) == 0 || slices.Contains(c.namespaces, namespace)
}

// sourceOf returns the source of a namespace's objects.
func (c *Cache[T]) sourceOf(namespace string) (Source[T], error) {
	if namespace == "" {
		return nil, fmt.Errorf("run cache %s: Options.Namespaces contains an empty name (leave Namespaces out, and take AllNamespaces of the handle)", c)
	}
	switch source := any(c.source).(type) {
	case *dynamic.Resource:
		namespaced, _ := any(source.Namespace(namespace)).(Source[T])
		return namespaced, nil
	case *dynamic.TypedResource[T]:
		return source.Namespace(namespace), nil
	case interface{ Namespace(name string) Source[T] }:
		return source.Namespace(namespace), nil
	default:
		return nil, fmt.Errorf("run cache %s: Options.Namespaces needs a source with a method Namespace, which %T does not have", c, c.source)
	}
}

// followNamespaces keeps the cache current with the streams of all namespaces until ctx ends, a mutation is found, or every
// namespace is rejected.
func (c *Cache[T]) followNamespaces(ctx context.Context) error {
	sources := map[string]Source[T]{}
	for _, namespace := range c.namespaces {
		source, err := c.sourceOf(namespace)
		if err != nil {
			return err
		}
		sources[namespace] = source
	}
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan namespaceEvent[T])
	m := namespaceMerger[T]{cache: c, streams: map[string]*namespaceStream{}}
	for namespace, source := range sources {
		m.streams[namespace] = &namespaceStream{}
		all.Go(func() { c.followNamespace(ctx, source, namespace, events) })
	}
	for {
		var event namespaceEvent[T]
		select {
		case <-ctx.Done():
		case event = <-events:
		}
		if ctx.Err() != nil { // event may be the consequence
			return fmt.Errorf("run cache %s: %w", c, retry.ContextError(ctx))
		}
		if err := m.handle(event); err != nil {
			return err
		}
		if c.mutations.check() {
			return nil // the mutation is the error
		}
	}
}

// followNamespace sends the events of one namespace until ctx ends.
func (c *Cache[T]) followNamespace(ctx context.Context, source Source[T], namespace string, events chan<- namespaceEvent[T]) {
	send := func(event namespaceEvent[T]) bool {
		event.namespace = namespace
		select {
		case events <- event:
			return true
		case <-ctx.Done():
			return false
		}
	}
	err := fmt.Errorf("run cache %s: its goroutine for namespace %q was ended by runtime.Goexit", c, namespace)
	defer func() { send(namespaceEvent[T]{ended: err}) }() // also after Goexit; ctx has ended otherwise
	for failures := 1; ; failures++ {
		start := time.Now()
		ended := c.followOnce(ctx, source, namespace, send)
		if time.Since(start) > namespaceBackoff().Max {
			failures = 1
		}
		delay := retry.Jitter(ctx, namespaceBackoff().Delay(failures))
		if !send(namespaceEvent[T]{ended: ended, retryAfter: delay}) || retry.Sleep(ctx, delay) != nil {
			return
		}
	}
}

// followOnce sends the events of one Follow and returns the error that ended it.
func (c *Cache[T]) followOnce(ctx context.Context, source Source[T], namespace string, send func(namespaceEvent[T]) bool) (err error) {
	defer func() {
		if value := recover(); value != nil {
			where := fmt.Sprintf("the source of the cache of %s, for namespace %q", c, namespace)
			err = &PanicError{Where: where, Value: value, Stack: debug.Stack()}
		}
	}()
	opts := c.followOptions()
	opts.OnProgress = func(version string) { send(namespaceEvent[T]{version: version}) }
	opts.OnInterruption = func(i dynamic.Interruption) { send(namespaceEvent[T]{interruption: &i}) }
	for change, err := range source.Follow(ctx, opts) {
		if err != nil {
			return err
		}
		if !send(namespaceEvent[T]{change: change}) {
			return retry.ContextError(ctx)
		}
	}
	return errors.New("its source ended without an error")
}

// namespaceMerger makes one stream of those of all namespaces.
type namespaceMerger[T any] struct {
	cache   *Cache[T]
	streams map[string]*namespaceStream
	state   watch.EventType // Synced, NotServed or "": what was reported last
}

// handle handles one event. Its error ends Run.
func (m *namespaceMerger[T]) handle(event namespaceEvent[T]) error {
	c, stream := m.cache, m.streams[event.namespace]
	switch {
	case event.ended != nil:
		return m.handleEnd(stream, event)
	case event.interruption != nil:
		i := *event.interruption
		if i.Err != nil {
			i.Err = fmt.Errorf("namespace %q: %w", event.namespace, i.Err)
		}
		c.handleInterruption(event.namespace, i)
	case event.version != "": // the initial list is complete
		m.removeMissing(stream, event.namespace)
		c.setResourceVersion(event.namespace, event.version)
	case event.change.Type == dynamic.Synced:
		m.removeMissing(stream, event.namespace)
		stream.synced, stream.notServed = true, false
		c.setRejected(event.namespace, nil)
		m.reportState()
	case event.change.Type == dynamic.NotServed:
		stream.notServed = true
		m.reportState()
	case event.change.Object != nil:
		if stream.received != nil {
			stream.received[KeyOf(c.metaOf(event.change.Object))] = struct{}{}
		}
		c.apply(event.change)
	}
	return nil
}

// handleEnd handles the end of a namespace's Follow, which is started again unless it panicked or all others are rejected, too.
func (m *namespaceMerger[T]) handleEnd(stream *namespaceStream, event namespaceEvent[T]) error {
	var panicErr *PanicError
	if event.retryAfter == 0 || errors.As(event.ended, &panicErr) {
		return event.ended
	}
	c := m.cache
	err := fmt.Errorf("namespace %q: %w", event.namespace, event.ended)
	if rejected := c.setRejected(event.namespace, err); len(rejected) == len(m.streams) {
		return fmt.Errorf("run cache %s: every namespace is rejected: %w", c, joinErrors(rejected))
	}
	stream.received = map[Key]struct{}{}
	stream.rejections++
	c.handleInterruption(event.namespace, dynamic.Interruption{Err: err, Relist: true, Delay: event.retryAfter, Count: stream.rejections})
	return nil
}

// removeMissing ends a repeated initial list.
func (m *namespaceMerger[T]) removeMissing(stream *namespaceStream, namespace string) {
	if stream.received == nil {
		return
	}
	for _, key := range m.cache.keysOf(namespace) {
		if _, found := stream.received[key]; !found {
			m.cache.remove(key, nil, true)
		}
	}
	stream.received = nil
}

// reportState reports Synced when all namespaces are synced and served, and NotServed when one is not served any more.
func (m *namespaceMerger[T]) reportState() {
	synced, notServed := true, false
	for _, stream := range m.streams {
		synced = synced && stream.synced && !stream.notServed
		notServed = notServed || stream.notServed
	}
	state := m.state
	switch {
	case synced:
		state = dynamic.Synced
	case notServed && state == dynamic.Synced:
		state = dynamic.NotServed
	}
	if state != m.state {
		m.state = state
		m.cache.setServed(state)
	}
}

// setRejected records why a namespace is rejected, nil if it is not, and returns the errors of all.
func (c *Cache[T]) setRejected(namespace string, err error) map[string]error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.rejected, namespace)
	} else {
		c.rejected[namespace] = err
		c.wakeWaiters()
	}
	return maps.Clone(c.rejected)
}

func (c *Cache[T]) keysOf(namespace string) (keys []Key) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for name := range c.objects[namespace] {
		keys = append(keys, Key{namespace, name})
	}
	return keys
}
