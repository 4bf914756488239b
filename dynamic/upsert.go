package dynamic

import (
	"bytes"
	"context"
	"fmt"

	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Outcome is what Upsert did.
type Outcome string

const (
	// Created says that there was no object of that name.
	Created Outcome = "created"
	// Updated says that there was an object, and that it was another one.
	Updated Outcome = "updated"
	// Unchanged says that the object was right already: nothing was written.
	Unchanged Outcome = "unchanged"
)

// Upsert makes the object of that name what change makes of it, and returns it as the server has it then. change gets
// the object as it was read a moment ago or, where there is none, an empty one with apiVersion, kind, name and
// namespace; these, the uid and the resourceVersion it must leave as they are. The object is then created or updated, or,
// where change left it as it was, not written at all.
//
// If somebody else creates, writes or deletes the object in between, Upsert reads again and calls change again, with
// what it has read then: change must not go on from a call before. It does so ten times at most, with growing pauses of
// some four seconds in all, and then fails with what the server said last, such as an error that apierrors.IsConflict
// knows. An error of change ends it.
//
// opts hold for the update as for the creation. On a subresource, such as "status", the object must be there.
func (r *Resource) Upsert(ctx context.Context, name string, change func(*unstructured.Object) error, opts *metav1.UpdateOptions) (*unstructured.Object, Outcome, error) {
	if change == nil {
		return nil, "", r.refuse("update", name, "the change to make is nil")
	}
	if r.form.as != "" {
		return nil, "", r.refuse("update", name, "a change needs the whole object: leave Metadata out")
	}
	var obj *unstructured.Object
	var did Outcome
	err := retryConflicts(ctx, func(ctx context.Context) (again bool, err error) {
		obj, did, again, err = r.upsertOnce(ctx, name, change, opts)
		return again, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("upsert %s %q: %w", r, name, err)
	}
	return obj, did, nil
}

// upsertOnce reads, changes and writes; again tells that somebody else was faster.
func (r *Resource) upsertOnce(ctx context.Context, name string, change func(*unstructured.Object) error, opts *metav1.UpdateOptions) (obj *unstructured.Object, did Outcome, again bool, err error) {
	obj, err = r.Get(ctx, name, nil)
	if apierrors.IsNotFound(err) && r.sub == "" {
		return r.insert(ctx, name, change, opts)
	}
	if err != nil {
		return nil, "", false, err
	}
	before, err := unstructured.Encode(obj)
	if err != nil {
		return nil, "", false, err
	}
	if err := r.changeOnly(obj, name, change); err != nil {
		return nil, "", false, err
	}
	after, err := unstructured.Encode(obj)
	if err != nil {
		return nil, "", false, err
	}
	if bytes.Equal(before, after) {
		obj, err = unstructured.Decode(before) // change may have put equal values of other Go types into obj
		return obj, Unchanged, false, err
	}
	obj, err = r.Update(ctx, obj, opts)
	return obj, Updated, apierrors.IsConflict(err) || apierrors.IsNotFound(err), err
}

// insert creates the object that was not there.
func (r *Resource) insert(ctx context.Context, name string, change func(*unstructured.Object) error, opts *metav1.UpdateOptions) (obj *unstructured.Object, did Outcome, again bool, err error) {
	obj = &unstructured.Object{Object: map[string]any{}}
	obj.SetGroupVersionKind(r.mapping.GVK)
	obj.SetName(name)
	if r.mapping.Namespaced {
		obj.SetNamespace(r.namespace)
	}
	if err := r.changeOnly(obj, name, change); err != nil {
		return nil, "", false, err
	}
	var creating *metav1.CreateOptions
	if opts != nil {
		creating = &metav1.CreateOptions{DryRun: opts.DryRun, FieldManager: opts.FieldManager, FieldValidation: opts.FieldValidation}
	}
	obj, err = r.Create(ctx, obj, creating)
	return obj, Created, apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err), err
}

// changeOnly lets change change obj, but not which object it is.
func (r *Resource) changeOnly(obj *unstructured.Object, name string, change func(*unstructured.Object) error) error {
	before := identityOf(obj)
	if err := change(obj); err != nil {
		return err
	}
	for i, after := range identityOf(obj) {
		if after.value != before[i].value {
			return r.refuse("update", name, "the change sets %s to %q where it was %q: it must stay", after.field, after.value, before[i].value)
		}
	}
	return nil
}

type identifier struct{ field, value string }

func identityOf(obj *unstructured.Object) []identifier {
	return []identifier{
		{"apiVersion", obj.GetAPIVersion()}, {"kind", obj.GetKind()},
		{"metadata.name", obj.GetName()}, {"metadata.namespace", obj.GetNamespace()},
		{"metadata.uid", string(obj.GetUID())}, {"metadata.resourceVersion", obj.GetResourceVersion()},
	}
}
