package controllerruntime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/anykind/anykind/dynamic"
)

// Read-your-writes consistency: a read from the cache first waits until earlier writes have ended and the cache has their
// results. A write is identified by kind, form, namespace and name; cache.Cache compares resourceVersions and UIDs. Memory: the
// writes in flight, and the memory of [cache.Cache.TrackWrites].

// kindForm identifies the informers of a kind in one form.
type kindForm struct {
	gvk  schema.GroupVersionKind
	form form
}

// consistentClient is a cachingClient whose reads wait for its writes.
type consistentClient struct {
	*cachingClient
	informers *informerCache
	inFlight  *inFlightWrites
}

// waitForWrites waits for the writes to an object or, without keys, for all writes to the kind.
func (c *consistentClient) waitForWrites(ctx context.Context, obj runtime.Object, list bool, keys ...client.ObjectKey) error {
	gvk, err := apiutil.GVKForObject(obj, c.api.scheme)
	if err != nil {
		return err
	}
	if list {
		gvk = itemKind(gvk)
	}
	of := kindForm{gvk, formOf(obj)}
	if err := c.inFlight.wait(ctx, of, keys...); err != nil {
		return err
	}
	for _, informer := range c.informers.find(of) {
		if err := informer.waitForWrites(ctx, keys...); err != nil {
			return fmt.Errorf("wait until the cache has the writes to %s: %w", gvk.Kind, err)
		}
	}
	return nil
}

// Get implements client.Reader.
func (c *consistentClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	cached, err := c.isCached(obj)
	if err != nil {
		return err
	}
	if cached && !(&client.GetOptions{}).ApplyOptions(opts).DisableReadYourWritesConsistency {
		if err := c.waitForWrites(ctx, obj, false, key); err != nil {
			return err
		}
	}
	return c.cachingClient.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (c *consistentClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	cached, err := c.isCached(list)
	if err != nil {
		return err
	}
	if cached && !(&client.ListOptions{}).ApplyOptions(opts).DisableReadYourWritesConsistency {
		if err := c.waitForWrites(ctx, list, true); err != nil {
			return err
		}
	}
	return c.cachingClient.List(ctx, list, opts...)
}

// record runs write and records its result in the informers. It only runs write if disabled is set or obj is not cached.
func (c *consistentClient) record(ctx context.Context, obj client.Object, disabled bool, write func() (*dynamic.Write, error)) error {
	cached, err := c.isCached(obj)
	if err != nil {
		return err
	}
	if disabled || !cached {
		_, err := write()
		return err
	}
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	of := kindForm{gvk, formOf(obj)}
	if _, err := c.informers.GetInformer(ctx, obj); err != nil { // before the write, so that the informer receives it
		return err
	}
	defer c.inFlight.begin(of, client.ObjectKeyFromObject(obj))()
	written, err := write()
	if err != nil {
		return err
	}
	if written != nil {
		for _, informer := range c.informers.find(of) {
			informer.recordWrite(*written)
		}
	}
	return nil
}

// recordObject records a write whose response is decoded into an object.
func (c *consistentClient) recordObject(ctx context.Context, obj client.Object, disabled bool, write func() error) error {
	return c.record(ctx, obj, disabled, func() (*dynamic.Write, error) {
		if err := write(); err != nil {
			return nil, err
		}
		return writeOf(obj), nil
	})
}

// writeOf returns the write of a response decoded into obj, nil if obj has no resourceVersion. An update that removes the last
// finalizer deletes the object. Its response has the resourceVersion before the deletion, so the write has only the UID.
func writeOf(obj client.Object) *dynamic.Write {
	if obj.GetResourceVersion() == "" {
		return nil
	}
	w := &dynamic.Write{Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
	gracePeriod := obj.GetDeletionGracePeriodSeconds() // set by a deletion; it is positive while the object remains for its grace period
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 && gracePeriod != nil && *gracePeriod == 0 {
		w.ResourceVersion = ""
	}
	return w
}

// Create implements client.Writer.
func (c *consistentClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	options := (&client.CreateOptions{}).ApplyOptions(opts)
	return c.recordObject(ctx, obj, options.DisableReadYourWritesConsistency || len(options.DryRun) > 0, func() error {
		return c.cachingClient.Create(ctx, obj, opts...)
	})
}

// Update implements client.Writer.
func (c *consistentClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	options := (&client.UpdateOptions{}).ApplyOptions(opts)
	return c.recordObject(ctx, obj, options.DisableReadYourWritesConsistency || len(options.DryRun) > 0, func() error {
		return c.cachingClient.Update(ctx, obj, opts...)
	})
}

// Patch implements client.Writer.
func (c *consistentClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	options := (&client.PatchOptions{}).ApplyOptions(opts)
	return c.recordObject(ctx, obj, options.DisableReadYourWritesConsistency || len(options.DryRun) > 0, func() error {
		return c.cachingClient.Patch(ctx, obj, patch, opts...)
	})
}

// Apply implements client.Writer.
func (c *consistentClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	options := (&client.ApplyOptions{}).ApplyOptions(opts)
	return c.recordApply(ctx, obj, options.DisableReadYourWritesConsistency || len(options.DryRun) > 0, func() error {
		return c.cachingClient.Apply(ctx, obj, opts...)
	})
}

// recordApply records a write. Its response is decoded into an ApplyConfiguration.
func (c *consistentClient) recordApply(ctx context.Context, obj runtime.ApplyConfiguration, disabled bool, write func() error) error {
	if u, ok := obj.(unstructuredApplyConfiguration); ok {
		return c.recordObject(ctx, u, disabled, write)
	}
	gvk, key, err := applyTarget(obj)
	if err != nil {
		return err
	}
	typed, err := c.api.scheme.New(gvk)
	if err != nil {
		return err
	}
	target, ok := typed.(client.Object)
	if !ok {
		return fmt.Errorf("apply %s: %T is not an object", gvk.Kind, typed)
	}
	target.SetNamespace(key.Namespace)
	target.SetName(key.Name)
	return c.record(ctx, target, disabled, func() (*dynamic.Write, error) {
		if err := write(); err != nil {
			return nil, err
		}
		data, err := json.Marshal(obj)
		if err != nil {
			return nil, err
		}
		applied := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(data, applied); err != nil {
			return nil, err
		}
		return writeOf(applied), nil
	})
}

// Delete implements client.Writer.
func (c *consistentClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	return c.record(ctx, obj, options.DisableReadYourWritesConsistency || len(options.DryRun) > 0, func() (*dynamic.Write, error) {
		uid := cmp.Or(obj.GetUID(), c.cachedUID(obj))
		response, err := c.delete(ctx, obj, opts...)
		if err != nil {
			return nil, err
		}
		return response.write(obj, uid), nil
	})
}

// cachedUID returns the UID of the cached object with obj's name, "" if there is none.
func (c *consistentClient) cachedUID(obj client.Object) (uid types.UID) {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return ""
	}
	for _, informer := range c.informers.find(kindForm{gvk, formOf(obj)}) {
		uid = cmp.Or(uid, informer.uid(client.ObjectKeyFromObject(obj)))
	}
	return uid
}

// write returns the write reported by the response to the deletion of obj. uid is the object's UID before the request.
func (r *deleteResponse) write(obj client.Object, uid types.UID) *dynamic.Write {
	w := &dynamic.Write{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	if r.Kind == "Status" || r.ResourceVersion == "" {
		w.UID = cmp.Or(r.Details.UID, uid)
		return w
	}
	w.UID = r.UID
	w.ResourceVersion = r.ResourceVersion
	return w
}

// DeleteAllOf returns an error, as the response does not name the deleted objects.
func (c *consistentClient) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errors.New("DeleteAllOf is not possible with read-your-writes consistency: list and delete")
}
