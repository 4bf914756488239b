package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// Finalize sees to it that cleanup runs before obj goes. It comes first in a reconciliation:
//
//	obj, deleted, err := controller.Finalize(ctx, widgets, obj, "example.com/disk", cleanup)
//	if err != nil || deleted {
//		return err
//	}
//
// An object that lives gets the finalizer, where it lacks it, and is returned as the server has it then: whatever the
// caller makes for it afterwards will be cleaned up. One that is being deleted and has the finalizer is cleaned up, and
// loses the finalizer when cleanup succeeded; if it fails, Finalize returns its error and the object stays until a later
// call succeeds. deleted tells that the object is being deleted or gone and that nothing is left to do for it.
//
// cleanup may run more than once for an object: after a crash between it and the removal of the finalizer, for
// instance, or where obj is out of date. obj is not changed.
//
// The finalizer is a name like "example.com/disk". It is added and removed by a JSON patch that tests what it replaces,
// so that neither another's finalizer nor another object of the same name is touched; what somebody else changes at the
// same time is read anew. r may be a handle on any namespace: the object says its own. It takes the verbs get and patch.
// See https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/.
func Finalize(ctx context.Context, r *dynamic.Resource, obj *unstructured.Object, finalizer string, cleanup func(context.Context, *unstructured.Object) error) (live *unstructured.Object, deleted bool, err error) {
	f := &finalizing{patching{at(r, obj), obj.GetUID()}, finalizer}
	if f.uid == "" || finalizer == "" {
		return nil, false, fmt.Errorf("finalize %s %q: it needs the object's uid, which the server gives, and the finalizer's name", r, obj.GetName())
	}
	if obj.GetDeletionTimestamp() == nil {
		name := obj.GetName()
		if obj, err = f.patch(ctx, obj, f.addition); err != nil {
			return nil, false, fmt.Errorf("add the finalizer %s to %s %q: %w", finalizer, r, name, err)
		}
	}
	if obj == nil {
		return nil, true, nil
	}
	if obj.GetDeletionTimestamp() == nil {
		return obj, false, nil
	}
	if !slices.Contains(obj.GetFinalizers(), finalizer) {
		return nil, true, nil
	}
	if err := cleanup(ctx, obj); err != nil {
		return nil, false, fmt.Errorf("clean up %s %q: %w", r, obj.GetName(), err)
	}
	if _, err := f.patch(ctx, obj, f.removal); err != nil {
		return nil, false, fmt.Errorf("remove the finalizer %s from %s %q: %w", finalizer, r, obj.GetName(), err)
	}
	return nil, true, nil
}

// finalizing is one call of Finalize.
type finalizing struct {
	patching
	name string
}

// addition is the patch that adds the finalizer; none where it is there, or where the object is being deleted: then
// nobody may add one.
func (f *finalizing) addition(obj *unstructured.Object) []operation {
	there := obj.GetFinalizers()
	switch {
	case obj.GetDeletionTimestamp() != nil || slices.Contains(there, f.name):
		return nil
	case len(there) == 0:
		return []operation{sameObject(f.uid), {"test", "/metadata/finalizers", missing}, {"add", "/metadata/finalizers", []string{f.name}}}
	}
	return []operation{sameObject(f.uid), {"test", "/metadata/finalizers", there}, {"add", "/metadata/finalizers/-", f.name}}
}

// removal is the patch that removes the finalizer; none where it is gone.
func (f *finalizing) removal(obj *unstructured.Object) []operation {
	at := slices.Index(obj.GetFinalizers(), f.name)
	if at < 0 {
		return nil
	}
	path := fmt.Sprint("/metadata/finalizers/", at)
	return []operation{sameObject(f.uid), {"test", path, f.name}, {"remove", path, nil}}
}
