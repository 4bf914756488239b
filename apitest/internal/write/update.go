package write

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest/internal/admission"
	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

// Update executes a PUT to an object or a subresource.
func (w *Writer) Update(ctx context.Context, req *Request, body Body) (result Result, err error) {
	op := w.begin(ctx, req)
	defer op.finish(&result, &err)
	if op.options, err = updateOptions(req.Query); err != nil {
		return Result{}, err
	}
	op.manager = managerName(op.options.fieldManager, req.UserAgent)
	obj, err := op.decode(body)
	if err != nil {
		return Result{}, err
	}
	if err := op.ensureNamespace(obj); err != nil {
		return Result{}, err
	}
	if err := op.checkName(obj); err != nil {
		return Result{}, err
	}
	op.dedupeOwners(obj, false)
	change := func(live *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
		return op.manage(live, obj.DeepCopy())
	}
	return op.update(change, obj.GetUID(), op.rules.strategy().createOnUpdate && (req.Subresource == "" || req.Subresource == "status"))
}

// change computes the new state from the stored state, which is empty for a missing object. It may be called repeatedly.
type change func(live *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error)

// update stores the result of change, restricted to the fields of the subresource.
func (op *operation) update(change change, uid types.UID, mayCreate bool) (Result, error) {
	if op.subresource == "scale" {
		return op.updateScale(change, uid)
	}
	changeAndMutate := func(live *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
		obj, err := change(live)
		if err != nil {
			return nil, err
		}
		if live.GetUID() == "" {
			return op.mutate(admission.Create, op.req.Name, obj, nil)
		}
		return op.mutate(admission.Update, op.req.Name, obj, live)
	}
	obj, created, err := op.guaranteedUpdate(changeAndMutate, nil, uid, mayCreate)
	if err != nil {
		return Result{}, err
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return Result{Object: obj.Object, Code: code}, nil
}

// guaranteedUpdate computes and stores a new state, and retries if another writer was faster. admit is the validating admission
// of an update, or nil.
func (op *operation) guaranteedUpdate(change change, admit func(obj, old *unstructuredv1.Unstructured) error, uid types.UID, mayCreate bool) (obj *unstructuredv1.Unstructured, created bool, err error) {
	key := op.key(op.req.Name)
	for {
		if err := op.ctx.Err(); err != nil {
			return nil, false, err
		}
		stored, exists := op.store.Get(key)
		if !exists {
			if !mayCreate {
				return nil, false, apierrors.NewNotFound(op.groupResource(), op.req.Name)
			}
			obj, err := op.createByUpdate(change, uid)
			if apierrors.IsAlreadyExists(err) {
				continue
			}
			return obj, true, err
		}
		obj, err := op.updateOnce(key, stored, change, admit, uid)
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
			continue
		}
		return obj, false, err
	}
}

func (op *operation) createByUpdate(change change, uid types.UID) (*unstructuredv1.Unstructured, error) {
	if err := op.checkUID(uid, op.empty()); err != nil {
		return nil, err
	}
	obj, err := change(op.empty())
	if err != nil {
		return nil, err
	}
	if err := op.confirmNoEscalation(obj, nil); err != nil {
		return nil, err
	}
	if err := parseVersion(obj.GetResourceVersion()); err != nil {
		return nil, err
	}
	return op.create(obj)
}

func (op *operation) updateOnce(key store.Key, stored store.Object, change change, admit func(obj, old *unstructuredv1.Unstructured) error, uid types.UID) (*unstructuredv1.Unstructured, error) {
	old, err := op.view(stored)
	if err != nil {
		return nil, err
	}
	if err := op.checkUID(uid, old); err != nil {
		return nil, err
	}
	obj, err := change(old.DeepCopy())
	if err != nil {
		return nil, err
	}
	if err := op.confirmNoEscalation(obj, old); err != nil {
		return nil, err
	}
	if err := op.checkVersion(obj, old); err != nil {
		return nil, err
	}
	if err := op.beforeUpdate(obj, old, admit); err != nil {
		return nil, err
	}
	version := old.GetResourceVersion()
	if op.deletedByUpdate(obj, old) {
		return op.deleteByUpdate(key, version, obj)
	}
	if op.options.isDryRun() {
		view, err := op.dryRunView(obj, version)
		return op.asRead(view), err
	}
	next, err := op.encode(obj)
	if err != nil {
		return nil, err
	}
	updated, err := op.store.Update(key, version, op.withStoredStatus(next, stored))
	if err != nil {
		return nil, err
	}
	return op.shown(updated)
}

// withStoredStatus returns next with the stored status, because an update does not change the status. Converting it to the
// request's version may have lost fields.
func (op *operation) withStoredStatus(next, stored store.Object) store.Object {
	isOther := op.resource.Definition == nil && stored["apiVersion"] != op.resource.APIVersion() && stored["status"] != nil
	if !isOther || op.subresource == "status" || !builtin.KeepsStatus(op.groupResource()) {
		return next
	}
	next["status"] = stored["status"]
	return next
}

// beforeUpdate completes and validates the new state of an object.
func (op *operation) beforeUpdate(obj, old *unstructuredv1.Unstructured, admit func(obj, old *unstructuredv1.Unstructured) error) error {
	if err := op.ensureNamespace(obj); err != nil {
		return err
	}
	setGeneration(obj, old.GetGeneration())
	op.rules.prepareUpdate(op, obj, old)
	keepSystemFields(obj, old)
	errs := op.validateMetadata(obj)
	errs = append(errs, validateMetadataUpdate(obj, old)...)
	errs = append(errs, op.rules.validate(op, obj, old)...)
	if len(errs) > 0 {
		return apierrors.NewInvalid(obj.GroupVersionKind().GroupKind(), obj.GetName(), errs)
	}
	op.warnFinalizers(obj, old)
	keepManagedTimes(obj, old)
	if admit != nil {
		return admit(obj, old)
	}
	return op.admit(admission.Update, op.req.Name, obj, old)
}

// keepManagedTimes restores the times of managedFields if nothing else changes, to make the update a no-op.
func keepManagedTimes(obj, old *unstructuredv1.Unstructured) {
	entries := obj.GetManagedFields()
	before := old.GetManagedFields()
	if len(entries) != len(before) || len(entries) == 0 {
		return
	}
	for i := range entries {
		entries[i].Time = before[i].Time
	}
	candidate := obj.DeepCopy()
	candidate.SetManagedFields(entries)
	if equality.Semantic.DeepEqual(candidate.Object, old.Object) {
		obj.SetManagedFields(entries)
	}
}

// deletedByUpdate reports whether an update removes the last finalizer of a terminating object.
func (op *operation) deletedByUpdate(obj, old *unstructuredv1.Unstructured) bool {
	if len(obj.GetFinalizers()) > 0 || old.GetDeletionTimestamp() == nil {
		return false
	}
	if op.groupResource() == (groupResource{Resource: "namespaces"}) {
		if finalizers := nested.Slice(obj.Object, "spec", "finalizers"); len(finalizers) > 0 {
			return false
		}
	}
	grace := old.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

// deleteByUpdate deletes the object and returns obj, its last state, with the resourceVersion before the update. obj is not
// stored: the DELETED event has the state before it.
func (op *operation) deleteByUpdate(key store.Key, version string, obj *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
	if !op.options.isDryRun() {
		if _, err := op.remove(key, version); err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	obj.SetResourceVersion(version)
	return obj, nil
}
