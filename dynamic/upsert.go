package dynamic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

// maxConflictAttempts bounds the attempts at a conflicting change.
const maxConflictAttempts = 10

// UpsertResult is the operation performed by Upsert.
type UpsertResult string

// Results of Upsert.
const (
	UpsertCreated   UpsertResult = "created"
	UpsertUpdated   UpsertResult = "updated"
	UpsertUnchanged UpsertResult = "unchanged" // no write: the object had the required state
)

// Upsert creates or updates an object. It reads the object, calls change, and creates or updates the object unless it is
// unchanged. It returns the stored object. If the object does not exist, change gets an object with apiVersion, kind, name and
// namespace only. change must not modify these fields, the uid or the resourceVersion.
//
// If a concurrent write conflicts, Upsert reads the object and calls change again. change must not depend on earlier calls.
// After ten attempts with backoff, about four seconds, Upsert returns the server's last error, such as a conflict for which
// apierrors.IsConflict holds. An error of change is returned at once.
//
// opts apply to both update and creation. A struct T is written with the stored fields that T lacks, except within the items of a
// changed list. On a subresource, such as "status", the object must exist.
func (h *Handle[T]) Upsert(ctx context.Context, name string, change func(*T) error, opts *metav1.UpdateOptions) (*T, UpsertResult, error) {
	if change == nil {
		return nil, "", h.invalid("update", name, "the change to make is nil")
	}
	if h.representation.kind != "" {
		return nil, "", h.invalid("update", name, "a change needs the whole object (remove Metadata or Tables)")
	}
	changeObject := func(obj *unstructured.Object) error { return h.codec.change(obj, change) }
	obj, result, err := upsert(ctx, h.objects(), name, changeObject, opts)
	if err != nil {
		return nil, "", err
	}
	stored, err := h.codec.decode(&h.endpoint, item{object: obj})
	if err != nil {
		return nil, "", err
	}
	return stored, result, nil
}

func upsert(ctx context.Context, r *Resource, name string, change func(*unstructured.Object) error, opts *metav1.UpdateOptions) (*unstructured.Object, UpsertResult, error) {
	var obj *unstructured.Object
	var result UpsertResult
	err := retryConflicts(ctx, func(ctx context.Context) (isRetryable bool, err error) {
		obj, result, isRetryable, err = upsertOnce(ctx, r, name, change, opts)
		return isRetryable, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("upsert %s %q: %w", r, name, err)
	}
	return obj, result, nil
}

// upsertOnce makes a single attempt. isRetryable reports a concurrent write.
func upsertOnce(ctx context.Context, r *Resource, name string, change func(*unstructured.Object) error, opts *metav1.UpdateOptions) (stored *unstructured.Object, result UpsertResult, isRetryable bool, err error) {
	obj, err := r.Get(ctx, name, nil)
	isNew := apierrors.IsNotFound(err) && r.subresource == ""
	if isNew {
		obj = r.newObject(name)
		err = nil
	}
	if err != nil {
		return nil, "", false, err
	}
	before, _ := unstructured.Encode(obj) // cannot fail: decoded or created here
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

// newObject returns an object with only kind, name and namespace.
func (e *endpoint) newObject(name string) *unstructured.Object {
	obj := &unstructured.Object{Object: map[string]any{}}
	e.setKind(obj)
	obj.SetName(name)
	if e.isNamespaced() {
		obj.SetNamespace(e.namespace)
	}
	return obj
}

// applyChange calls change and rejects changes of the object's identity.
func (e *endpoint) applyChange(obj *unstructured.Object, change func(*unstructured.Object) error) error {
	name := obj.GetName()
	before := identifiers(obj)
	if err := change(obj); err != nil {
		return err
	}
	for i, after := range identifiers(obj) {
		if after != before[i] {
			return e.invalid("update", name, "the change sets %s to %q, but it must stay %q", after.field, after.value, before[i].value)
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

// RetryOnConflict calls change until it returns nil or an error other than a conflict (apierrors.IsConflict), at most ten times
// with backoff, about four seconds. It returns the last error of change. change must read its objects in each call. If ctx ends
// in between, the error wraps both ctx's and the last conflict. An *[ApplyConflictError] is returned at once, because a
// repetition does not resolve it. For a single object, [Handle.Upsert] is easier. See
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

// mergeChanges repeats in target the changes from before to after.
func mergeChanges(target, before, after map[string]any) {
	for field := range before {
		if _, ok := after[field]; !ok {
			delete(target, field)
		}
	}
	for field, value := range after {
		old, hadOld := before[field]
		if hadOld && reflect.DeepEqual(old, value) {
			continue
		}
		valueMap, valueIsMap := value.(map[string]any)
		oldMap, _ := old.(map[string]any)
		targetMap, targetIsMap := target[field].(map[string]any)
		if valueIsMap && targetIsMap {
			mergeChanges(targetMap, oldMap, valueMap)
		} else {
			target[field] = value
		}
	}
}
