package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// Finalize adds a finalizer to a live object. If the object is being deleted, it calls cleanup and then removes the finalizer. It
// comes first in a reconcile:
//
//	obj, deleted, err := controller.Finalize(ctx, widgets, obj, "example.com/disk", cleanup)
//	if err != nil || deleted {
//		return err
//	}
//
// A live object without the finalizer gets it, and is returned as stored by the server: anything created for it afterwards will
// be cleaned up. If an object with the finalizer is being deleted, Finalize calls cleanup and removes the finalizer after a
// success. After an error of cleanup it returns the error, and the object stays until a later call succeeds. deleted reports that
// the object is being deleted or gone, and that nothing is left to do.
//
// cleanup may run more than once per object, for instance after a crash or with a stale obj. obj is not changed.
//
// A live obj with the finalizer is returned as it is, without a request. It must not be older than the reads and writes of this
// process: with a stale obj, an earlier call may already have cleaned up and removed the object. With the ctx of a reconcile of
// [Run] or of a [Handler], Finalize records the received states, and the next reconcile of the object waits until the cache has
// them.
//
// The finalizer is a name like "example.com/disk". A JSON patch adds and removes it, and tests the replaced values and the UID:
// it changes neither the remaining finalizers nor a new object of the same name. After a conflict the object is read again. r may
// be a handle on any namespace: obj determines its own. The verbs get and patch are needed. See
// https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/.
func Finalize(ctx context.Context, r *dynamic.Resource, obj *unstructured.Object, finalizer string, cleanup func(context.Context, *unstructured.Object) error) (live *unstructured.Object, deleted bool, err error) {
	name := obj.GetName()
	if obj.GetUID() == "" || finalizer == "" {
		return nil, false, fmt.Errorf("finalize %s %q: the object's uid (set by the server) and the finalizer's name are required", r, name)
	}
	if obj.GetDeletionTimestamp() == nil {
		obj, err = patchObject(ctx, r, obj, func(obj *unstructured.Object) []operation { return addFinalizer(obj, finalizer) })
		if err != nil {
			return nil, false, fmt.Errorf("add finalizer %s to %s %q: %w", finalizer, r, name, err)
		}
	}
	switch {
	case obj == nil:
		return nil, true, nil
	case obj.GetDeletionTimestamp() == nil:
		return obj, false, nil
	case !slices.Contains(obj.GetFinalizers(), finalizer):
		return nil, true, nil
	}
	if err := cleanup(ctx, obj); err != nil {
		return nil, false, fmt.Errorf("clean up %s %q: %w", r, name, err)
	}
	_, err = patchObject(ctx, r, obj, func(obj *unstructured.Object) []operation { return removeFinalizer(obj, finalizer) })
	if err != nil {
		return nil, false, fmt.Errorf("remove finalizer %s from %s %q: %w", finalizer, r, name, err)
	}
	return nil, true, nil
}

// addFinalizer returns the operations to add a finalizer. It returns none if the object has the finalizer or is being deleted:
// the server accepts no new finalizer then.
func addFinalizer(obj *unstructured.Object, finalizer string) []operation {
	finalizers := obj.GetFinalizers()
	switch {
	case obj.GetDeletionTimestamp() != nil || slices.Contains(finalizers, finalizer):
		return nil
	case len(finalizers) == 0:
		return []operation{{"test", "/metadata/finalizers", missing}, {"add", "/metadata/finalizers", []string{finalizer}}}
	}
	return []operation{{"test", "/metadata/finalizers", finalizers}, {"add", "/metadata/finalizers/-", finalizer}}
}

// removeFinalizer returns the operations to remove a finalizer, or none if the object does not have it.
func removeFinalizer(obj *unstructured.Object, finalizer string) []operation {
	i := slices.Index(obj.GetFinalizers(), finalizer)
	if i < 0 {
		return nil
	}
	path := fmt.Sprint("/metadata/finalizers/", i)
	return []operation{{"test", path, finalizer}, {"remove", path, nil}}
}
