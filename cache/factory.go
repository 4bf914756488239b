package cache

import (
	"context"
	"sync"
)

// SharedFactory shares caches, like client-go's SharedInformerFactory: users of the same path (resource and namespace) share a
// stream and a cache, from the first Acquire to the last release. All caches have the same options. All sources must be of the
// same cluster, user and object form (full or metadata): the path alone identifies a cache. It is safe for concurrent use.
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

// NewSharedFactory returns a factory of caches with opts.
func NewSharedFactory[T any, P Object[T]](opts *Options[T]) *SharedFactory[T] {
	return &SharedFactory[T]{
		newCache: func(source Source[T]) *Cache[T] { return New[T, P](source, opts) },
		shared:   map[string]*sharedCache[T]{},
	}
}

// Acquire returns the shared cache of source, and runs it until every user has called release. The last release waits until the
// stream is closed. ctx provides values only: its end does not stop the cache. Acquire replaces a stopped cache; see
// [Cache.WaitForStop]. A source without a path is an error.
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
