package controller

import (
	"context"
	"time"

	"github.com/anykind/anykind/controller/workqueue"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/consistency"
	"github.com/anykind/anykind/unstructured"
)

// A cache lags behind its own process. A reconcile with a stale state could take an object for live after an earlier reconcile
// has removed its finalizer, or create an object twice. So a key is reconciled once
//
//   - the runner's cache has the tracked writes of its object, and the states received by Finalize, SetStatus and PatchStatus. A
//     state is recorded when it is read, before it is acted upon: a write with a lost response needs no record of its own.
//   - the caches have the writes by the key's last reconcile, made with its ctx through handles of cache.Cache.TrackWrites.
//
// Waiting keys keep no worker: the queue holds them. cache.Cache.WaitForWrites bounds each wait. A key waits once for the writes
// to its object before a reconcile: the rest of the process may write to the object without pause.

// slowWait is the duration of a wait after which it is logged.
const slowWait = 10 * time.Second

// objectsKey is the context key of the [Objects] of a reconcile.
type objectsKey struct{}

// recordObserved records a state received from the server, if ctx belongs to a reconcile of objects of r's resource and server.
func recordObserved(ctx context.Context, r *dynamic.Resource, obj *unstructured.Object) {
	o, _ := ctx.Value(objectsKey{}).(*Objects)
	if o == nil || o.Resource == nil || obj == nil || r.APIResource().GVR.GroupResource() != o.Resource.APIResource().GVR.GroupResource() ||
		r.Conn().Server() != o.Resource.Conn().Server() { // the versions of another cluster are not those of the cache
		return
	}
	o.Cache.RecordWrite(dynamic.Write{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	})
}

// reconcileAfterWrites adds a key to the queue again once the cache has the writes to its object. The caller is the worker with
// the key.
func (r *runner[K]) reconcileAfterWrites(ctx context.Context, key K, priority int) {
	r.hold(ctx, key, func(ctx context.Context) error {
		objects, object := r.keys.Object(key)
		var err error
		if objects != nil {
			err = objects.Cache.WaitForWrites(ctx, object)
		}
		r.waited.Store(key, nil)
		r.queue.AddWithOptions(key, &workqueue.AddOptions{Priority: priority})
		return err
	})
}

// finish calls Done for a reconciled key once the caches have the writes of the reconcile.
func (r *runner[K]) finish(ctx context.Context, key K, written *consistency.Writes) {
	if written.IsEmpty() {
		r.queue.Done(key)
		return
	}
	r.hold(ctx, key, written.Wait)
}

// hold keeps a key from the workers until wait returns, and logs wait's error.
func (r *runner[K]) hold(ctx context.Context, key K, wait func(context.Context) error) {
	r.queue.Hold(key)
	r.workers.Go(func() {
		r.protect("a wait for writes of a controller", func() error {
			defer r.queue.Done(key)
			slow := time.AfterFunc(slowWait, func() {
				r.loggerOf(key).Warn("a cache has not received writes for " + slowWait.String() + ": the key waits")
			})
			defer slow.Stop()
			if err := wait(ctx); err != nil && ctx.Err() == nil {
				r.loggerOf(key).Warn("the next reconcile may find an older state than was written", "error", err)
			}
			return nil
		})
	})
}
