package cache

import (
	"context"
	"sync"
)

// Set shares caches: all who use the same resource, in the same namespace or namespaces, share one stream and one copy,
// from the first use to the last. All its caches have the same options, and all its sources are of one cluster and one
// user, and read in one form, whole or as metadata: it tells them apart by path alone. It is safe for concurrent use.
type Set[T any] struct {
	make func(Source[T]) *Cache[T]

	mu     sync.Mutex
	shared map[string]*shared[T]
}

type shared[T any] struct {
	cache *Cache[T]
	users int
	stop  context.CancelFunc
	ended chan struct{}
}

// NewSet makes a set whose caches have these options.
func NewSet[T any, P Object[T]](opts *Options[T]) *Set[T] {
	return &Set[T]{
		make:   func(source Source[T]) *Cache[T] { return New[T, P](source, opts) },
		shared: map[string]*shared[T]{},
	}
}

// Use gives the cache of a source, which runs from the first Use on, until each user has called its release; the last
// release waits until the stream is closed. The cache does not end with ctx, from which it takes values alone. A cache
// that has ended with an error, which [Cache.Wait] tells its users, is replaced by the next Use. The error is of a source
// that has no path.
func (s *Set[T]) Use(ctx context.Context, source Source[T]) (cache *Cache[T], release func(), err error) {
	path, err := source.Path("")
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.shared[path]
	if one == nil || one.hasEnded() {
		one = s.run(ctx, source)
		s.shared[path] = one
	}
	one.users++
	return one.cache, sync.OnceFunc(func() { s.release(path, one) }), nil
}

func (s *Set[T]) run(ctx context.Context, source Source[T]) *shared[T] {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	one := &shared[T]{cache: s.make(source), stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(one.ended)
		_ = one.cache.Run(ctx) // the cache tells its users, by Sync and WaitFor
	}()
	return one
}

func (s *Set[T]) release(path string, one *shared[T]) {
	s.mu.Lock()
	one.users--
	last := one.users == 0
	if last && s.shared[path] == one {
		delete(s.shared, path)
	}
	s.mu.Unlock()
	if last {
		one.stop()
		<-one.ended
	}
}

func (o *shared[T]) hasEnded() bool {
	select {
	case <-o.cache.ended: // which its users see before o.ended
		return true
	default:
		return false
	}
}
