package sharedinformer

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
)

const (
	minSourceBackoff = time.Second
	maxSourceBackoff = 30 * time.Second
)

// source is the stream of an informer's objects. The server may reject a request before the first Synced, and Follow then ends.
// Like client-go's reflectors, source reports the error and calls Follow again. The cache keeps the objects of the previous
// calls, which are the new stream's KnownObjects.
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
		synced := false
		for backoff := minSourceBackoff; ; backoff = min(2*backoff, maxSourceBackoff) {
			var failure error
			for change, err := range s.Source.Follow(ctx, s.options(opts)) {
				if failure = err; err != nil {
					break
				}
				synced = synced || change.Type == dynamic.Synced
				if !yield(change, nil) {
					return
				}
			}
			if ctx.Err() != nil || synced {
				yield(dynamic.Change[T]{}, failure)
				return
			}
			s.report(failure)
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
	changed.KnownObjects = knownObjects[T, P]{s.cached()}
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

// knownObjects implements dynamic.KnownObjects with the objects of a cache. Objects have the names of the source, unless a transform
// renames them.
type knownObjects[T any, P cache.Object[T]] struct{ cache *cache.Cache[T] }

func (k knownObjects[T, P]) Version(namespace, name string) (uid types.UID, resourceVersion string, found bool) {
	obj, found := k.cache.Get(namespace, name)
	if !found {
		return "", "", false
	}
	return P(obj).GetUID(), P(obj).GetResourceVersion(), true
}

func (k knownObjects[T, P]) Keys() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, obj := range k.cache.List("", nil) {
			if !yield(P(obj).GetNamespace(), P(obj).GetName()) {
				return
			}
		}
	}
}
