package controller

import (
	"context"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/consistency"
	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A cache lags behind its own process. A reconcile that finds an older state than an earlier reconcile has read or written could
// take an object for live whose finalizer the earlier one has removed, or create an object twice. So a key is reconciled once
//
//   - the runner's cache has the tracked writes of its object, and the states that Finalize, SetStatus and PatchStatus have received.
//     A state is recorded when it is read, before it is acted upon: a write whose response is lost needs none of its own.
//   - the caches have what the last reconcile of the key has written through handles of cache.Cache.TrackWrites with its ctx.
//
// Waiting keys keep no worker: the queue holds them. cache.Cache.WaitForWrites bounds each wait, and a key waits once for the writes to
// its object before a reconcile: other parts of the process may write to the object without pause.

// slowWait is the time after which a wait is logged.
const slowWait = 10 * time.Second

// reconciledCache is the cache of the objects that a runner reconciles.
type reconciledCache interface {
	RecordWrite(w dynamic.Write)
	HasWrites(keys ...cache.Key) bool
	WaitForWrites(ctx context.Context, keys ...cache.Key) error
}

// observer records the states of a runner's objects that its reconciles receive.
type observer struct {
	resource schema.GroupResource
	objects  reconciledCache
}

// observerKey is the key of the observer in the ctx of reconciles.
type observerKey struct{}

// recordObserved records a state that a reconcile has received from the server, if ctx is that of a reconcile of r's objects.
func recordObserved(ctx context.Context, r *dynamic.Resource, obj *unstructured.Object) {
	o, _ := ctx.Value(observerKey{}).(*observer)
	if o == nil || obj == nil || r.Mapping().GVR.GroupResource() != o.resource {
		return
	}
	o.objects.RecordWrite(dynamic.Write{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	})
}

// reconcileAfterWrites adds a key that a worker has to the queue again once the cache has the writes to its object.
func (r *runner) reconcileAfterWrites(ctx context.Context, key cache.Key, priority int) {
	r.hold(ctx, key, func(ctx context.Context) error {
		err := r.observer.objects.WaitForWrites(ctx, key)
		r.waited.Store(key, nil)
		r.queue.AddWithOptions(key, &workqueue.AddOptions{Priority: priority})
		return err
	})
}

// finish calls Done for a key that was reconciled, once the caches have what the reconcile has written.
func (r *runner) finish(ctx context.Context, key cache.Key, written *consistency.Writes) {
	if written.IsEmpty() {
		r.queue.Done(key)
		return
	}
	r.hold(ctx, key, written.Wait)
}

// hold keeps a key from the workers until wait returns, whose error it logs.
func (r *runner) hold(ctx context.Context, key cache.Key, wait func(context.Context) error) {
	r.queue.Hold(key)
	r.workers.Go(func() {
		r.protect("a wait for writes of a controller", func() error {
			defer r.queue.Done(key)
			slow := time.AfterFunc(slowWait, func() {
				r.opts.Logger.Warn("a cache has not received writes for "+slowWait.String()+": the key waits", "key", key.String())
			})
			defer slow.Stop()
			if err := wait(ctx); err != nil && ctx.Err() == nil {
				r.opts.Logger.Warn("the next reconcile may find an older state than was written", "key", key.String(), "error", err)
			}
			return nil
		})
	})
}
