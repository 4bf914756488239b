package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/resourceversion"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/shard"
)

// With Options.Namespaces or Options.Shard, the objects come in partitions: the objects of a namespace and a shard, which one goroutine
// follows. The goroutine sends the events to Run's goroutine, the only writer of the cache, and waits until they are handled. A
// failed Follow is restarted. A restarted Follow of a handle emits the differences from the cache; one of another source emits all
// objects again but no missed deletions: at the end of the initial list, objects missing from the list are removed.

// partitionBackoff is the delay before the next Follow of a rejected namespace.
var partitionBackoff = retry.Backoff{Min: 2 * time.Second, Max: time.Minute}

// partition is a stream of the cache. Run's goroutine owns its state.
type partition[T any] struct {
	cache     *Cache[T]
	namespace string // "" for the source as it is
	shard     shard.Selector
	source    Source[T]
	stop      context.CancelFunc
	handled   chan struct{} // receives after each event
	audit     *auditor[T]
	continues []*auditor[T] // of the stopped partitions that this one continues, until it starts

	resourceVersion string          // up to which the cache has the changes; "" before the initial list
	seen            []seenPartition // of other partitions, which this one has taken over at an earlier resourceVersion
	isStopped       bool
	state           watch.EventType // Synced, NotServed, stateRejected or ""
	hasSynced       bool
	rejected        error // until the next Follow
	interrupted     error // until the next progress
	progressed      progressTime
	rejections      int
	received        map[types.NamespacedName]struct{} // the keys of a repeated initial list; nil outside of such a list
}

// seenPartition is a resourceVersion up to which the cache has the changes of a shard already.
type seenPartition struct {
	shard           shard.Selector
	resourceVersion string
}

// partitionEvent is an event of a partition: a change, a resourceVersion, an interruption or the end of a Follow.
type partitionEvent[T any] struct {
	partition    *partition[T]
	change       dynamic.Change[T]
	version      string
	interruption *dynamic.Interruption
	unsharded    bool
	ended        error
	retryAfter   time.Duration // of ended
}

// stateRejected is the state of a partition after the end of its Follow.
const stateRejected watch.EventType = "REJECTED"

// allNamespaces returns source.AllNamespaces() for a handle of package dynamic, and source otherwise.
func allNamespaces[T any](source Source[T]) Source[T] {
	if handle, ok := source.(*dynamic.Handle[T]); ok {
		return handle.AllNamespaces()
	}
	return source
}

// sourceOf returns the source of the objects of a namespace.
func (c *Cache[T]) sourceOf(namespace string) (Source[T], error) {
	if c.opts.Namespaces == nil {
		return c.source, nil
	}
	if namespace == "" {
		return nil, fmt.Errorf("run cache %s: Options.Namespaces contains an empty name (leave Namespaces out, and take AllNamespaces of the handle)", c)
	}
	switch source := c.source.(type) {
	case *dynamic.Handle[T]:
		return source.Namespace(namespace), nil
	case interface{ Namespace(name string) Source[T] }:
		return source.Namespace(namespace), nil
	default:
		return nil, fmt.Errorf("run cache %s: Options.Namespaces needs a source with a method Namespace; %T has none", c, c.source)
	}
}

// has reports whether the partition delivers the object.
func (p *partition[T]) has(namespace string, uid types.UID) bool {
	return (p.namespace == "" || p.namespace == namespace) && p.shard.Matches(namespace, uid)
}

// follow sends the events of the partition until ctx ends.
func (p *partition[T]) follow(ctx context.Context, events chan<- partitionEvent[T]) {
	send := func(event partitionEvent[T]) bool {
		event.partition = p
		select {
		case events <- event:
		case <-ctx.Done():
			return false
		}
		select {
		case <-p.handled:
			return true
		case <-ctx.Done():
			return false
		}
	}
	err := fmt.Errorf("run cache %s: its goroutine for %s was ended by runtime.Goexit", p.cache, p)
	defer func() { send(partitionEvent[T]{ended: err}) }() // also after Goexit; ctx has ended otherwise
	resourceVersion := p.resourceVersion
	for failures := 1; ; failures++ {
		start := time.Now()
		ended := p.followOnce(ctx, resourceVersion, send)
		resourceVersion = ""
		if time.Since(start) > partitionBackoff.Max {
			failures = 1
		}
		delay := retry.Jitter(ctx, partitionBackoff.Delay(failures))
		if !send(partitionEvent[T]{ended: ended, retryAfter: delay}) || retry.Sleep(ctx, delay) != nil {
			return
		}
	}
}

// followOnce sends the events of a single Follow, from a resourceVersion on if it is not "", and returns its error.
func (p *partition[T]) followOnce(ctx context.Context, resourceVersion string, send func(partitionEvent[T]) bool) (err error) {
	defer func() {
		if value := recover(); value != nil {
			where := fmt.Sprintf("the source of the cache of %s, for %s", p.cache, p)
			err = &PanicError{Where: where, Value: value, Stack: debug.Stack()}
		}
	}()
	opts := p.cache.followOptions()
	opts.Shard = p.shard
	opts.ResourceVersion = resourceVersion
	opts.KnownObjects = p.knownObjects()
	opts.Relist = p.audit.requests()
	opts.OnProgress = func(version string) { send(partitionEvent[T]{version: version}) }
	opts.OnUnsharded = func() { send(partitionEvent[T]{unsharded: true}) }
	opts.OnInterruption = func(i dynamic.Interruption) { send(partitionEvent[T]{interruption: &i}) }
	for change, err := range p.source.Follow(ctx, opts) {
		if err != nil {
			return err
		}
		if !send(partitionEvent[T]{change: change}) {
			return retry.ContextError(ctx)
		}
	}
	return errors.New("its source ended without an error")
}

// setHandled lets the goroutine of the partition continue. It may have ended with a token left, after a stop.
func (p *partition[T]) setHandled() {
	select {
	case p.handled <- struct{}{}:
	default:
	}
}

// String names the partition in errors.
func (p *partition[T]) String() string {
	var names []string
	if p.namespace != "" {
		names = append(names, fmt.Sprintf("namespace %q", p.namespace))
	}
	if selector := p.shard.String(); selector != "" {
		names = append(names, selector)
	}
	return strings.Join(names, ", ")
}

// wrap adds the partition to an error.
func (p *partition[T]) wrap(err error) error {
	if name := p.String(); err != nil && name != "" {
		return fmt.Errorf("%s: %w", name, err)
	}
	return err
}

// hasSeen reports whether the cache has a change of an object already, from a partition that p has taken over. Shards of p.seen may
// overlap: a shard may have been listed, removed and listed again.
func (p *partition[T]) hasSeen(namespace string, uid types.UID, resourceVersion string) bool {
	return slices.ContainsFunc(p.seen, func(s seenPartition) bool {
		return s.shard.Matches(namespace, uid) && isReached(s.resourceVersion, resourceVersion)
	})
}

// setVersion records progress. It reports whether the resourceVersion has decreased: after a restore of etcd from a backup.
func (p *partition[T]) setVersion(resourceVersion string) (isRestored bool) {
	isRestored = resourceversion.IsNewer(p.resourceVersion, resourceVersion)
	p.progressed.record(p.resourceVersion, resourceVersion)
	p.resourceVersion = resourceVersion
	p.interrupted = nil
	p.seen = slices.DeleteFunc(p.seen, func(s seenPartition) bool {
		return isRestored || !resourceversion.IsNewer(s.resourceVersion, resourceVersion)
	})
	return isRestored
}
