package sharedinformer

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
)

const (
	minSourceBackoff = time.Second
	maxSourceBackoff = 30 * time.Second
)

// source is the stream of an informer's objects. The server may reject a request before the first Synced, and Follow then ends.
// Like client-go's reflectors, source reports the error and calls Follow again. The cache keeps the objects of the previous
// calls. When the new stream has synced, cached objects that it has not delivered are deleted.
type source[T any, P cache.Object[T]] struct {
	cache.Source[T]
	cached func() *cache.Cache[T]
	// report is called with every error that interrupts the stream.
	report func(error)
	// resourceVersion is the newest resourceVersion that the stream has processed.
	resourceVersion atomic.Pointer[string]
}

// Follow implements cache.Source. It ends with ctx.
func (s *source[T, P]) Follow(ctx context.Context, opts *dynamic.FollowOptions) iter.Seq2[dynamic.Change[T], error] {
	return func(yield func(dynamic.Change[T], error) bool) {
		current := &stream[T, P]{cached: s.cached()}
		for backoff := minSourceBackoff; ; backoff = min(2*backoff, maxSourceBackoff) {
			var failure error
			for change, err := range s.Source.Follow(ctx, s.options(opts)) {
				if failure = err; err != nil {
					break
				}
				for _, missing := range current.differences(change) {
					if !yield(missing, nil) {
						return
					}
				}
				if !yield(change, nil) {
					return
				}
			}
			if ctx.Err() != nil || current.synced {
				yield(dynamic.Change[T]{}, failure)
				return
			}
			s.report(failure)
			current.keys = sets.New[types.NamespacedName]()
			select {
			case <-ctx.Done():
			case <-time.After(backoff + rand.N(backoff/2)):
			}
		}
	}
}

// options adds the informer's callbacks to the options of a stream.
func (s *source[T, P]) options(opts *dynamic.FollowOptions) *dynamic.FollowOptions {
	changed := *opts
	changed.OnProgress = func(resourceVersion string) {
		s.resourceVersion.Store(&resourceVersion)
		if opts.OnProgress != nil {
			opts.OnProgress(resourceVersion)
		}
	}
	changed.OnInterruption = func(i dynamic.Interruption) {
		if i.Err != nil {
			s.report(i.Err)
		}
		if opts.OnInterruption != nil {
			opts.OnInterruption(i)
		}
	}
	return &changed
}

// stream is the state of a call of Follow.
type stream[T any, P cache.Object[T]] struct {
	cached *cache.Cache[T]
	synced bool
	keys   sets.Set[types.NamespacedName] // of the delivered objects; nil in the first stream, without previous objects
}

// differences returns deletions to emit before change: objects that only previous streams have delivered.
func (s *stream[T, P]) differences(change dynamic.Change[T]) (missing []dynamic.Change[T]) {
	switch {
	case s.synced:
	case change.Type == dynamic.Synced:
		s.synced = true
		if s.keys == nil {
			return nil
		}
		for _, obj := range s.cached.List("", nil) {
			if !s.keys.Has(cache.KeyOf(P(obj))) {
				missing = append(missing, dynamic.Change[T]{Type: watch.Deleted, Object: obj, FinalStateUnknown: true})
			}
		}
		s.keys = nil
	case change.Object != nil && s.keys != nil:
		s.keys.Insert(cache.KeyOf(P(change.Object)))
	}
	return missing
}
