package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
)

// With Options.Namespaces, each namespace has a goroutine with a Follow. The goroutine sends the events to Run's goroutine, the
// only writer of the cache. A failed Follow is restarted. A restarted Follow emits all objects again but no missed deletions: at
// the end of the initial list, objects missing from the list are removed.

// namespaceBackoff is the delay before the next Follow of a rejected namespace.
var namespaceBackoff = retry.Backoff{Min: 2 * time.Second, Max: time.Minute}

// namespaceEvent is an event from the stream of a namespace: a change, a resourceVersion, an interruption or the end of a Follow.
type namespaceEvent[T any] struct {
	stream       *namespaceStream[T]
	change       dynamic.Change[T]
	version      string
	interruption *dynamic.Interruption
	ended        error
	retryAfter   time.Duration // of ended
}

// namespaceStream is the stream of a namespace. Run's goroutine owns its state.
type namespaceStream[T any] struct {
	namespace string
	source    Source[T]

	state      watch.EventType // Synced, NotServed, stateRejected or ""
	rejections int
	received   map[types.NamespacedName]struct{} // the keys of a repeated initial list; nil outside of such a list
}

// stateRejected is the state of a stream after the end of its Follow.
const stateRejected watch.EventType = "REJECTED"

// allNamespaces returns source.AllNamespaces() for a handle of package dynamic, and source otherwise.
func allNamespaces[T any](source Source[T]) Source[T] {
	if handle, ok := source.(*dynamic.Handle[T]); ok {
		return handle.AllNamespaces()
	}
	return source
}

func (c *Cache[T]) sourceOf(namespace string) (Source[T], error) {
	if namespace == "" {
		return nil, fmt.Errorf("run cache %s: Options.Namespaces contains an empty name (leave Namespaces out, and take AllNamespaces of the handle)", c)
	}
	switch source := any(c.source).(type) {
	case *dynamic.Handle[T]:
		return source.Namespace(namespace), nil
	case interface{ Namespace(name string) Source[T] }:
		return source.Namespace(namespace), nil
	default:
		return nil, fmt.Errorf("run cache %s: Options.Namespaces needs a source with a method Namespace; %T has none", c, c.source)
	}
}

// followNamespaces applies the streams of all namespaces to the cache until ctx ends, a mutation is found, or every namespace is
// rejected.
func (c *Cache[T]) followNamespaces(ctx context.Context) error {
	m := namespaceMerger[T]{cache: c}
	for namespace := range c.streams {
		source, err := c.sourceOf(namespace)
		if err != nil {
			return err
		}
		m.streams = append(m.streams, &namespaceStream[T]{namespace: namespace, source: source})
	}
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := make(chan namespaceEvent[T])
	for _, stream := range m.streams {
		all.Go(func() { c.followNamespace(ctx, stream, events) })
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

// followNamespace sends the events of a namespace until ctx ends.
func (c *Cache[T]) followNamespace(ctx context.Context, stream *namespaceStream[T], events chan<- namespaceEvent[T]) {
	send := func(event namespaceEvent[T]) bool {
		event.stream = stream
		select {
		case events <- event:
			return true
		case <-ctx.Done():
			return false
		}
	}
	err := fmt.Errorf("run cache %s: its goroutine for namespace %q was ended by runtime.Goexit", c, stream.namespace)
	defer func() { send(namespaceEvent[T]{ended: err}) }() // also after Goexit; ctx has ended otherwise
	for failures := 1; ; failures++ {
		start := time.Now()
		ended := c.followOnce(ctx, stream, send)
		if time.Since(start) > namespaceBackoff.Max {
			failures = 1
		}
		delay := retry.Jitter(ctx, namespaceBackoff.Delay(failures))
		if !send(namespaceEvent[T]{ended: ended, retryAfter: delay}) || retry.Sleep(ctx, delay) != nil {
			return
		}
	}
}

// followOnce sends the events of a single Follow and returns its error.
func (c *Cache[T]) followOnce(ctx context.Context, stream *namespaceStream[T], send func(namespaceEvent[T]) bool) (err error) {
	defer func() {
		if value := recover(); value != nil {
			where := fmt.Sprintf("the source of the cache of %s, for namespace %q", c, stream.namespace)
			err = &PanicError{Where: where, Value: value, Stack: debug.Stack()}
		}
	}()
	opts := c.followOptions()
	opts.OnProgress = func(version string) { send(namespaceEvent[T]{version: version}) }
	opts.OnInterruption = func(i dynamic.Interruption) { send(namespaceEvent[T]{interruption: &i}) }
	for change, err := range stream.source.Follow(ctx, opts) {
		if err != nil {
			return err
		}
		if !send(namespaceEvent[T]{change: change}) {
			return retry.ContextError(ctx)
		}
	}
	return errors.New("its source ended without an error")
}

// namespaceMerger merges the streams of all namespaces.
type namespaceMerger[T any] struct {
	cache   *Cache[T]
	streams []*namespaceStream[T]
}

// handle applies event to the cache. An error ends Run.
func (m *namespaceMerger[T]) handle(event namespaceEvent[T]) error {
	c := m.cache
	stream := event.stream
	switch {
	case event.ended != nil:
		return m.handleEnd(event)
	case event.interruption != nil:
		i := *event.interruption
		if i.Err != nil {
			i.Err = fmt.Errorf("namespace %q: %w", stream.namespace, i.Err)
		}
		c.handleInterruption(stream.namespace, i)
	case event.version != "": // the initial list is complete
		c.removeMissing(stream)
		c.setResourceVersion(stream.namespace, event.version)
	case event.change.Type == dynamic.Started:
		c.setRejected(stream.namespace, nil)
		stream.state = ""
	case event.change.Type == dynamic.Synced:
		c.removeMissing(stream)
		c.setRejected(stream.namespace, nil)
		c.setSynced(stream.namespace)
		m.setState(stream, dynamic.Synced)
	case event.change.Type == dynamic.NotServed:
		m.setState(stream, dynamic.NotServed)
	case event.change.Object != nil:
		if stream.received != nil {
			stream.received[KeyOf(c.metaOf(event.change.Object))] = struct{}{}
		}
		c.apply(event.change)
	}
	return nil
}

// handleEnd marks a namespace as rejected after the end of its Follow; followNamespace starts the next Follow. An error ends Run:
// a panic or Goexit in the stream's goroutine, or the rejection of every namespace.
func (m *namespaceMerger[T]) handleEnd(event namespaceEvent[T]) error {
	var panicErr *PanicError
	if event.retryAfter == 0 || errors.As(event.ended, &panicErr) {
		return event.ended
	}
	c := m.cache
	stream := event.stream
	err := fmt.Errorf("namespace %q: %w", stream.namespace, event.ended)
	c.setRejected(stream.namespace, err)
	m.setState(stream, stateRejected)
	if !slices.ContainsFunc(m.streams, func(s *namespaceStream[T]) bool { return s.state != stateRejected }) {
		return fmt.Errorf("run cache %s: every namespace is rejected: %w", c, c.joinErrors(rejection))
	}
	stream.received = map[types.NamespacedName]struct{}{}
	stream.rejections++
	c.handleInterruption(stream.namespace, dynamic.Interruption{Err: err, Relist: true, Delay: event.retryAfter, Count: stream.rejections})
	return nil
}

// setState records the state of a stream and reports a change of the merged state. Synced: at least one namespace is synced, and
// the rest are synced or rejected. NotServed: at least one namespace is not served.
func (m *namespaceMerger[T]) setState(stream *namespaceStream[T], state watch.EventType) {
	stream.state = state
	synced := false
	notServed := false
	for _, s := range m.streams {
		synced = synced || s.state == dynamic.Synced
		notServed = notServed || s.state == dynamic.NotServed
	}
	for _, s := range m.streams {
		synced = synced && (s.state == dynamic.Synced || s.state == stateRejected)
	}
	isReady := m.cache.synced && !m.cache.notServed // the last reported state
	switch {
	case synced && !isReady:
		m.cache.setServed(dynamic.Synced)
	case notServed && isReady:
		m.cache.setServed(dynamic.NotServed)
	}
}

// removeMissing ends a repeated initial list. It reads without the lock: only Run's goroutine changes the objects.
func (c *Cache[T]) removeMissing(stream *namespaceStream[T]) {
	if stream.received == nil {
		return
	}
	for name := range c.objects[stream.namespace] {
		key := types.NamespacedName{Namespace: stream.namespace, Name: name}
		if _, found := stream.received[key]; !found {
			c.remove(key, nil, true)
		}
	}
	stream.received = nil
}
