package write

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// deleteNamespace starts the termination of a namespace. done is false if a terminating namespace has no finalizers left in its
// spec.
func (op *operation) deleteNamespace(old *unstructuredv1.Unstructured, options *metav1.DeleteOptions) (done bool, response map[string]any, err error) {
	if err := op.checkRecord(old, options); err != nil {
		return true, nil, err
	}
	if old.GetDeletionTimestamp() != nil {
		finalizers := nested.Strings(old.Object, "spec", "finalizers")
		return len(finalizers) > 0, old.Object, nil
	}
	if err := op.admitDelete(old, options); err != nil {
		return true, nil, err
	}
	obj := old.DeepCopy()
	now := metav1.NewTime(op.now())
	obj.SetDeletionTimestamp(&now)
	if err := unstructuredv1.SetNestedField(obj.Object, "Terminating", "status", "phase"); err != nil {
		return true, nil, err
	}
	obj.SetFinalizers(namespaceFinalizers(obj.GetFinalizers(), options))
	obj, err = op.storeMarked(obj, old.GetResourceVersion())
	if err != nil {
		return true, nil, err
	}
	return true, obj.Object, nil
}

// namespaceFinalizers returns the finalizers adapted to the propagation policy of the options.
func namespaceFinalizers(finalizers []string, options *metav1.DeleteOptions) []string {
	want := map[string]bool{}
	orphan := orphanDependents(options)
	switch {
	case orphan != nil:
		want[metav1.FinalizerOrphanDependents] = *orphan
		want[metav1.FinalizerDeleteDependents] = !*orphan
	case options.PropagationPolicy != nil:
		want[metav1.FinalizerOrphanDependents] = *options.PropagationPolicy == metav1.DeletePropagationOrphan
		want[metav1.FinalizerDeleteDependents] = *options.PropagationPolicy == metav1.DeletePropagationForeground
	default:
		return finalizers
	}
	finalizers = slices.DeleteFunc(slices.Clone(finalizers), func(name string) bool {
		keep, decided := want[name]
		return decided && !keep
	})
	for _, name := range []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents} {
		if want[name] && !slices.Contains(finalizers, name) {
			finalizers = append(finalizers, name)
		}
	}
	return finalizers
}

// checkRecord checks the preconditions of namespaces and definitions, for which the API server has different error texts.
func (op *operation) checkRecord(old *unstructuredv1.Unstructured, options *metav1.DeleteOptions) error {
	if options.Preconditions == nil {
		return nil
	}
	if uid := options.Preconditions.UID; uid != nil && *uid != old.GetUID() {
		return apierrors.NewConflict(op.groupResource(), op.req.Name,
			fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", *uid, old.GetUID())) //nolint:staticcheck // the server's text
	}
	if version := options.Preconditions.ResourceVersion; version != nil && *version != old.GetResourceVersion() {
		return apierrors.NewConflict(op.groupResource(), op.req.Name,
			fmt.Errorf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", *version, old.GetResourceVersion())) //nolint:staticcheck // the server's text
	}
	return nil
}
