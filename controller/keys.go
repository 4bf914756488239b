package controller

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/objectkey"
)

// ObjectCache is the cache of reconciled objects, a *cache.Cache.
type ObjectCache interface {
	RecordWrite(w dynamic.Write)
	HasWrites(keys ...types.NamespacedName) bool
	WaitForWrites(ctx context.Context, keys ...types.NamespacedName) error
}

// Objects are the reconciled objects of a cluster.
type Objects struct {
	// Cluster is the name of the cluster for logs and [ReconcileResult]; "" for the only cluster.
	Cluster string
	// Cache has the objects.
	Cache ObjectCache
	// Resource is a handle on the objects' resource. With nil, [Finalize] and [SetStatus] record no received state.
	Resource *dynamic.Resource
}

// Keys are the keys of [RunKeys].
type Keys[K comparable] struct {
	// Enqueue adds the keys of changed objects to the queue until ctx ends. It may wait for initial lists first. Run ends with its
	// error.
	Enqueue func(ctx context.Context, queue *workqueue.Queue[K]) error
	// Object returns the object of a key. With nil the key is dropped. It must be quick.
	Object func(key K) (*Objects, types.NamespacedName)
	// Admit, if any, is called with a key before its reconcile. A key that is not admitted is dropped, until it is added again.
	Admit func(key K, priority int) bool
	// Release, if any, is called after the reconcile of an admitted key.
	Release func(key K)
}

// RunKeys is [Run] for keys of any type, such as the keys of package fleet with a cluster. It starts at once: opts.Triggers must be
// empty, and so must opts.Predicates: Keys.Enqueue adds keys of related objects, and drops updates with [Passes].
func RunKeys[K comparable](ctx context.Context, keys Keys[K], reconcile func(ctx context.Context, key K) (after time.Duration, err error), opts *Options) error {
	r := newKeyRunner(opts, nil, keys, reconcile)
	if len(r.opts.Triggers) > 0 {
		return errors.New("run a controller: Options.Triggers of RunKeys must be empty (add the keys in Keys.Enqueue)")
	}
	if len(r.opts.Predicates) > 0 {
		return errors.New("run a controller: Options.Predicates of RunKeys must be empty (drop changes in Keys.Enqueue, with Passes)")
	}
	if r.opts.Sharding != nil {
		return errors.New("run a controller: Options.Sharding of RunKeys must be nil (see Keys.Admit)")
	}
	return r.work(ctx, func(ctx context.Context) {
		r.protect("the Enqueue of a controller", func() error { return keys.Enqueue(ctx, r.queue) })
	})
}

func (r *runner[K]) admit(key K, priority int) bool {
	return r.keys.Admit == nil || r.keys.Admit(key, priority)
}

func (r *runner[K]) release(key K) {
	if r.keys.Release != nil {
		r.keys.Release(key)
	}
}

// loggerOf returns the logger with the cluster, if any, and the object of a key.
func (r *runner[K]) loggerOf(key K) *slog.Logger {
	objects, object := r.keys.Object(key)
	logger := r.opts.Logger
	if objects != nil && objects.Cluster != "" {
		logger = logger.With("cluster", objects.Cluster)
	}
	return logger.With("key", objectkey.Text(object))
}
