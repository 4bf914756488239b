package dynamic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxConflictAttempts is the number of attempts at a change that conflicts with others.
const maxConflictAttempts = 10

// UpsertResult is the operation of an Upsert.
type UpsertResult string

// The results of Upsert.
const (
	UpsertCreated   UpsertResult = "created"
	UpsertUpdated   UpsertResult = "updated"
	UpsertUnchanged UpsertResult = "unchanged" // the object was as required: nothing was written
)

// Upsert creates or updates an object: it reads the object of that name, calls change, creates or updates the object
// unless change left it equal, and returns it as stored. If the object does not exist, change gets one with apiVersion,
// kind, name and namespace only; these, the uid and the resourceVersion must not be changed.
//
// If the object is created, written or deleted by others in between, Upsert reads it again and calls change again, which
// must depend on no earlier call. It makes ten attempts with backoff, about four seconds in all, and then returns the
// server's last error, such as one for which apierrors.IsConflict holds. An error of change is returned at once.
//
// opts apply to the update as well as to the creation. On a subresource, such as "status", the object must exist.
func (r *Resource) Upsert(ctx context.Context, name string, change func(*unstructured.Object) error, opts *metav1.UpdateOptions) (*unstructured.Object, UpsertResult, error) {
	if change == nil {
		return nil, "", r.invalid("update", name, "the change to make is nil")
	}
	if r.representation.kind != "" {
		return nil, "", r.invalid("update", name, "a change needs the whole object (remove Metadata)")
	}
	var obj *unstructured.Object
	var result UpsertResult
	err := retryConflicts(ctx, func(ctx context.Context) (isRetryable bool, err error) {
		obj, result, isRetryable, err = r.upsertOnce(ctx, name, change, opts)
		return isRetryable, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("upsert %s %q: %w", r, name, err)
	}
	return obj, result, nil
}

// upsertOnce makes one attempt, which is worth a retry if another client wrote at the same time.
func (r *Resource) upsertOnce(ctx context.Context, name string, change func(*unstructured.Object) error, opts *metav1.UpdateOptions) (stored *unstructured.Object, result UpsertResult, isRetryable bool, err error) {
	obj, err := r.Get(ctx, name, nil)
	isNew := apierrors.IsNotFound(err) && r.subresource == ""
	if isNew {
		obj, err = r.newObject(name), nil
	}
	if err != nil {
		return nil, "", false, err
	}
	before, _ := unstructured.Encode(obj) // it was decoded or made here
	if err := r.applyChange(obj, change); err != nil {
		return nil, "", false, err
	}
	if isNew {
		options := valueOf(opts)
		stored, err = r.Create(ctx, obj, &metav1.CreateOptions{
			DryRun: options.DryRun, FieldManager: options.FieldManager, FieldValidation: options.FieldValidation,
		})
		return stored, UpsertCreated, apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err), err
	}
	after, err := unstructured.Encode(obj)
	if err != nil {
		return nil, "", false, err
	}
	if bytes.Equal(before, after) {
		stored, err = unstructured.Limits{Object: -1}.Decode(before) // change may have set equal values of other Go types
		return stored, UpsertUnchanged, false, err
	}
	stored, err = r.Update(ctx, obj, opts)
	return stored, UpsertUpdated, apierrors.IsConflict(err) || apierrors.IsNotFound(err), err
}

// newObject returns an object of the resource with its identity only.
func (r *Resource) newObject(name string) *unstructured.Object {
	obj := &unstructured.Object{Object: map[string]any{}}
	r.setKind(obj)
	obj.SetName(name)
	if r.isNamespaced() {
		obj.SetNamespace(r.namespace)
	}
	return obj
}

// applyChange calls change and rejects a change of the object's identity.
func (r *Resource) applyChange(obj *unstructured.Object, change func(*unstructured.Object) error) error {
	name, before := obj.GetName(), identifiers(obj)
	if err := change(obj); err != nil {
		return err
	}
	for i, after := range identifiers(obj) {
		if after != before[i] {
			return r.invalid("update", name, "the change sets %s to %q, but it must stay %q", after.field, after.value, before[i].value)
		}
	}
	return nil
}

type identifier struct{ field, value string }

func identifiers(obj *unstructured.Object) []identifier {
	return []identifier{
		{"apiVersion", obj.GetAPIVersion()}, {"kind", obj.GetKind()},
		{"metadata.name", obj.GetName()}, {"metadata.namespace", obj.GetNamespace()},
		{"metadata.uid", string(obj.GetUID())}, {"metadata.resourceVersion", obj.GetResourceVersion()},
	}
}

// RetryOnConflict calls change until it returns nil or an error for which apierrors.IsConflict does not hold, ten times at
// most with backoff, about four seconds in all, and returns its last error. change must read what it changes each time. If
// ctx ends in between, the error wraps both ctx's and the last conflict. An *[ApplyConflictError] is returned at once:
// a repetition does not resolve it. For one object, [Resource.Upsert] is easier. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions.
func RetryOnConflict(ctx context.Context, change func(context.Context) error) error {
	return retryConflicts(ctx, func(ctx context.Context) (isRetryable bool, err error) {
		err = change(ctx)
		var applyConflict *ApplyConflictError
		return apierrors.IsConflict(err) && !errors.As(err, &applyConflict), err
	})
}

func retryConflicts(ctx context.Context, attempt func(context.Context) (isRetryable bool, err error)) error {
	backoff := retry.Backoff{Min: 10 * time.Millisecond, Max: time.Second}
	for n := 1; ; n++ {
		isRetryable, err := attempt(ctx)
		if err == nil || !isRetryable {
			return err
		}
		if n == maxConflictAttempts {
			return fmt.Errorf("%d attempts: %w", n, err)
		}
		if ctxErr := backoff.Wait(ctx, n); ctxErr != nil {
			return fmt.Errorf("%w after %w", ctxErr, err)
		}
	}
}
