package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

// Delete executes a DELETE of an object. The optional body has the DeleteOptions.
func (w *Writer) Delete(ctx context.Context, req *Request, body Body) (result Result, err error) {
	op := w.begin(ctx, req)
	defer op.finish(&result, &err)
	options, err := deleteOptions(req.Query, body)
	if err != nil {
		return Result{}, err
	}
	op.options.dryRun = options.DryRun
	orphan := orphanDependents(options)
	obj, deleted, err := op.delete(options)
	if err != nil {
		return Result{}, err
	}
	code := http.StatusOK
	if !deleted && orphan != nil && !*orphan {
		code = http.StatusAccepted
	}
	return Result{Object: obj, Code: code}, nil
}

// delete deletes the request's object, or sets its deletionTimestamp. It returns the response, and whether the object was
// removed.
func (op *operation) delete(options *metav1.DeleteOptions) (response map[string]any, deleted bool, err error) {
	for {
		op.warnings = nil
		if !op.isOfMany {
			op.warnOrphans(options)
		}
		if err := op.ctx.Err(); err != nil {
			return nil, false, err
		}
		stored, exists := op.store.Get(op.key(op.req.Name))
		if !exists {
			return nil, false, apierrors.NewNotFound(op.groupResource(), op.req.Name)
		}
		response, deleted, err = op.deleteOnce(stored, options.DeepCopy())
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
			continue
		}
		return response, deleted, err
	}
}

func (op *operation) deleteOnce(stored store.Object, options *metav1.DeleteOptions) (response map[string]any, deleted bool, err error) {
	old, err := op.view(stored)
	if err != nil {
		return nil, false, err
	}
	switch op.groupResource() {
	case groupResource{Resource: "namespaces"}:
		if done, response, err := op.deleteNamespace(old, options); done {
			return response, false, err
		}
	case groupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}:
		if done, response, err := op.deleteDefinition(old, options); done {
			return response, false, err
		}
	}
	if err := checkPreconditions(options.Preconditions, old); err != nil {
		return nil, false, err
	}
	obj := old.DeepCopy()
	graceful, pending := op.beforeDelete(obj, options)
	if pending {
		return op.deletionResponse(old), false, nil
	}
	finalizers, changed := op.deletionFinalizers(obj, options)
	version := old.GetResourceVersion()
	if err := op.admitDelete(old, options); err != nil {
		return nil, false, err
	}
	if graceful || changed || len(obj.GetFinalizers()) > 0 {
		obj.SetFinalizers(finalizers)
		if !graceful && len(finalizers) > 0 {
			op.markDeleted(obj)
		}
		if graceful || len(finalizers) > 0 {
			if obj, err = op.storeMarked(obj, version); err != nil {
				return nil, false, err
			}
			if len(finalizers) > 0 || *options.GracePeriodSeconds > 0 {
				return obj.Object, false, nil
			}
			version = obj.GetResourceVersion()
			if op.options.isDryRun() {
				return obj.Object, true, nil
			}
		}
	}
	if op.options.isDryRun() {
		return op.deletionResponse(obj), true, nil
	}
	last, err := op.remove(op.key(op.req.Name), version)
	if err != nil {
		return nil, false, err
	}
	return op.deletionResponse(last), true, nil
}

// warnOrphans warns if a job is deleted with the default propagation policy, which keeps its pods.
func (op *operation) warnOrphans(options *metav1.DeleteOptions) {
	isJob := op.groupResource() == groupResource{Group: "batch", Resource: "jobs"}
	if isJob && options.PropagationPolicy == nil && orphanDependents(options) == nil {
		op.warn("child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning")
	}
}

func checkPreconditions(preconditions *metav1.Preconditions, old *unstructuredv1.Unstructured) error {
	if preconditions == nil {
		return nil
	}
	kind := old.GroupVersionKind()
	resource := schema.GroupResource{Group: kind.Group, Resource: kind.Kind}
	if uid := preconditions.UID; uid != nil && *uid != old.GetUID() {
		return apierrors.NewConflict(resource, old.GetName(), fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *uid, old.GetUID()))
	}
	if version := preconditions.ResourceVersion; version != nil && *version != old.GetResourceVersion() {
		return apierrors.NewConflict(resource, old.GetName(), fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *version, old.GetResourceVersion()))
	}
	return nil
}

// storeMarked stores an object with its new deletionTimestamp.
func (op *operation) storeMarked(obj *unstructuredv1.Unstructured, version string) (*unstructuredv1.Unstructured, error) {
	if op.options.isDryRun() {
		return op.dryRunView(obj, version)
	}
	next, err := op.toStorage(obj)
	if err != nil {
		return nil, err
	}
	stored, err := op.store.Update(op.key(op.req.Name), version, next)
	if err != nil {
		return nil, err
	}
	return op.view(stored)
}

// remove removes an object from the store.
func (op *operation) remove(key store.Key, version string) (*unstructuredv1.Unstructured, error) {
	removed, err := op.store.Delete(key, version, nil)
	if err != nil {
		return nil, err
	}
	return op.view(removed)
}

// beforeDelete chooses the grace period and sets obj's deletionTimestamp. Only pods are deleted gracefully.
func (op *operation) beforeDelete(obj *unstructuredv1.Unstructured, options *metav1.DeleteOptions) (graceful, pending bool) {
	if seconds := options.GracePeriodSeconds; seconds != nil && *seconds < 0 {
		options.GracePeriodSeconds = new(int64(1))
	}
	if op.resource.Group != "" || op.resource.Plural != "pods" {
		return false, false
	}
	if obj.GetDeletionTimestamp() != nil {
		return op.shortenGracePeriod(obj, options)
	}
	period := podGracePeriod(obj, options)
	options.GracePeriodSeconds = &period
	deletion := metav1.NewTime(op.now().Add(time.Duration(period) * time.Second))
	obj.SetDeletionTimestamp(&deletion)
	obj.SetDeletionGracePeriodSeconds(&period)
	if generation := obj.GetGeneration(); generation > 0 {
		obj.SetGeneration(generation + 1)
	}
	return true, false
}

// podGracePeriod returns the grace period of a pod in seconds: 0 for an unscheduled or finished pod.
func podGracePeriod(pod *unstructuredv1.Unstructured, options *metav1.DeleteOptions) int64 {
	period := nested.Int64(pod.Object, "spec", "terminationGracePeriodSeconds")
	if options.GracePeriodSeconds != nil {
		period = *options.GracePeriodSeconds
	}
	node := nested.String(pod.Object, "spec", "nodeName")
	phase := nested.String(pod.Object, "status", "phase")
	if node == "" || phase == "Failed" || phase == "Succeeded" {
		return 0
	}
	if period < 0 {
		return 1
	}
	return period
}

// shortenGracePeriod handles a repeated deletion of a terminating pod. Its grace period can only decrease.
func (op *operation) shortenGracePeriod(pod *unstructuredv1.Unstructured, options *metav1.DeleteOptions) (graceful, pending bool) {
	current := pod.GetDeletionGracePeriodSeconds()
	if current == nil || *current == 0 {
		return false, false
	}
	if options.GracePeriodSeconds == nil {
		options.GracePeriodSeconds = current
		return false, true
	}
	period := *options.GracePeriodSeconds
	if period >= *current {
		return false, true
	}
	deletion := metav1.NewTime(pod.GetDeletionTimestamp().Add(time.Duration(period-*current) * time.Second))
	if now := metav1.NewTime(op.now()); deletion.Before(&now) {
		deletion = now
		if period != 0 {
			period = 1
		}
	}
	options.GracePeriodSeconds = &period
	pod.SetDeletionTimestamp(&deletion)
	pod.SetDeletionGracePeriodSeconds(&period)
	return true, false
}

// markDeleted sets the deletionTimestamp of an object with finalizers.
func (op *operation) markDeleted(obj *unstructuredv1.Unstructured) {
	now := metav1.NewTime(op.now())
	if obj.GetDeletionTimestamp() == nil {
		if generation := obj.GetGeneration(); generation > 0 {
			obj.SetGeneration(generation + 1)
		}
		obj.SetDeletionTimestamp(&now)
	} else if obj.GetDeletionTimestamp().After(now.Time) {
		obj.SetDeletionTimestamp(&now)
	}
	obj.SetDeletionGracePeriodSeconds(new(int64))
}

// deletionFinalizers returns the finalizers adapted to the propagation policy, and whether they changed.
func (op *operation) deletionFinalizers(obj *unstructuredv1.Unstructured, options *metav1.DeleteOptions) (finalizers []string, changed bool) {
	before := obj.GetFinalizers()
	policy := op.propagation(before, options)
	for _, name := range before {
		if name != metav1.FinalizerOrphanDependents && name != metav1.FinalizerDeleteDependents {
			finalizers = append(finalizers, name)
		}
	}
	switch policy {
	case metav1.DeletePropagationOrphan:
		finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	default: // background deletion needs no finalizer
	}
	a := slices.Sorted(slices.Values(before))
	b := slices.Sorted(slices.Values(finalizers))
	if slices.Equal(slices.Compact(a), slices.Compact(b)) {
		return before, false
	}
	return finalizers, true
}

// propagation returns the policy of a deletion. Options take precedence over the object's finalizers, and these over the kind's
// default.
func (op *operation) propagation(finalizers []string, options *metav1.DeleteOptions) metav1.DeletionPropagation {
	group := op.resource.Group
	plural := op.resource.Plural
	orphan := orphanDependents(options)
	switch {
	case plural == "events" && (group == "" || group == "events.k8s.io"):
		return metav1.DeletePropagationBackground
	case orphan != nil && *orphan:
		return metav1.DeletePropagationOrphan
	case orphan != nil:
		return metav1.DeletePropagationBackground
	case options.PropagationPolicy != nil:
		return *options.PropagationPolicy
	}
	for _, name := range finalizers {
		switch name {
		case metav1.FinalizerOrphanDependents:
			return metav1.DeletePropagationOrphan
		case metav1.FinalizerDeleteDependents:
			return metav1.DeletePropagationForeground
		}
	}
	if group == "batch" && plural == "jobs" || group == "" && plural == "replicationcontrollers" {
		return metav1.DeletePropagationOrphan
	}
	return metav1.DeletePropagationBackground
}

// deletionResponse returns the response to a completed deletion: the object or a Status, depending on the kind.
func (op *operation) deletionResponse(obj *unstructuredv1.Unstructured) map[string]any {
	if op.rules.strategy().returnsDeleted {
		return asRead(op.resource, obj.Object)
	}
	details := map[string]any{"name": obj.GetName(), "kind": op.resource.Plural, "uid": string(obj.GetUID())}
	if op.resource.Group != "" {
		details["group"] = op.resource.Group
	}
	return successStatus(details)
}

func successStatus(details map[string]any) map[string]any {
	status := map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": metav1.StatusSuccess}
	if details != nil {
		status["details"] = details
	}
	return status
}
