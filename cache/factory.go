package cache

import (
	"context"
	"sync"
)

// SharedFactory shares caches, as client-go's SharedInformerFactory does: all users of a resource in the same namespace or
// namespaces share one stream and one cache, from the first Acquire to the last release. All caches have the same options.
// All sources must be of one cluster, one user and one form of objects, full or metadata: a cache is found by the source's
// path alone. It is safe for concurrent use.
type SharedFactory[T any] struct {
	newCache func(Source[T]) *Cache[T]

	mu     sync.Mutex
	shared map[string]*sharedCache[T]
}

type sharedCache[T any] struct {
	cache *Cache[T]
	users int
	stop  context.CancelFunc
}

// NewSharedFactory returns a factory of caches with these options.
func NewSharedFactory[T any, P Object[T]](opts *Options[T]) *SharedFactory[T] {
	return &SharedFactory[T]{
		newCache: func(source Source[T]) *Cache[T] { return New[T, P](source, opts) },
		shared:   map[string]*sharedCache[T]{},
	}
}

// Acquire returns the cache of a source, which runs until each user has called its release; the last release waits until
// the stream is closed. The cache does not end with ctx, which provides values only. A cache that has ended with an error,
// see [Cache.WaitForStop], is replaced by the next Acquire. A source without a path is an error.
func (f *SharedFactory[T]) Acquire(ctx context.Context, source Source[T]) (cache *Cache[T], release func(), err error) {
	path, err := source.Path("")
	if err != nil {
		return nil, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	shared := f.shared[path]
	if shared == nil || isClosed(shared.cache.stopped) {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		var running sync.WaitGroup
		shared = &sharedCache[T]{cache: f.newCache(source), stop: func() { cancel(); running.Wait() }}
		running.Go(func() { _ = shared.cache.Run(ctx) }) // users get the error from WaitForSync and WaitForStop
		f.shared[path] = shared
	}
	shared.users++
	return shared.cache, sync.OnceFunc(func() { f.release(path, shared) }), nil
}

func (f *SharedFactory[T]) release(path string, shared *sharedCache[T]) {
	f.mu.Lock()
	shared.users--
	isLast := shared.users == 0
	if isLast && f.shared[path] == shared {
		delete(f.shared, path)
	}
	f.mu.Unlock()
	if isLast {
		shared.stop()
	}
}
