package controller

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/unstructured"
)

// AlreadyOwnedError reports an object with a different controller.
type AlreadyOwnedError struct {
	// Object names the object: Deployment "web".
	Object string
	// Controller is the reference to the current controller.
	Controller metav1.OwnerReference
}

func (e *AlreadyOwnedError) Error() string {
	return fmt.Sprintf("%s is controlled by %s %q (an object has one controller)", e.Object, e.Controller.Kind, e.Controller.Name)
}

// SetControllerReference makes owner the controller of obj, in obj's metadata.ownerReferences. The garbage collector deletes obj
// when owner is gone, a foreground deletion of owner waits for obj, and obj accepts no second controller. An older reference to
// owner is replaced. References to further owners stay.
//
// owner is an object from the server with its own apiVersion and kind, which a PartialObjectMetadata lacks.
// SetControllerReference returns an [*AlreadyOwnedError] if obj has a different controller. It also returns an error if owner is
// namespaced and obj is in a different namespace or has none yet: the garbage collector would not find owner. After an error obj
// is unchanged. See https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/.
func SetControllerReference(owner, obj *unstructured.Object) error {
	reference, err := newOwnerReference(owner, obj)
	if err != nil {
		return err
	}
	if current := metav1.GetControllerOf(obj); current != nil && !isSameOwner(*current, reference) {
		return &AlreadyOwnedError{Object: describe(obj), Controller: *current}
	}
	reference.Controller = new(true)
	reference.BlockOwnerDeletion = new(true)
	upsertOwner(obj, reference)
	return nil
}

// SetOwnerReference adds owner to the owners of obj. The garbage collector deletes obj when its last owner is gone. If owner is
// already obj's controller, it stays the controller. It returns the errors of [SetControllerReference] except
// [*AlreadyOwnedError].
func SetOwnerReference(owner, obj *unstructured.Object) error {
	reference, err := newOwnerReference(owner, obj)
	if err != nil {
		return err
	}
	for _, current := range obj.GetOwnerReferences() {
		if isSameOwner(current, reference) {
			reference.Controller = current.Controller
			reference.BlockOwnerDeletion = current.BlockOwnerDeletion
		}
	}
	upsertOwner(obj, reference)
	return nil
}

func newOwnerReference(owner, obj *unstructured.Object) (metav1.OwnerReference, error) {
	reference := metav1.OwnerReference{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
	}
	fail := func(format string, args ...any) (metav1.OwnerReference, error) {
		return reference, fmt.Errorf("set owner %s of %s: %s", describe(owner), describe(obj), fmt.Sprintf(format, args...))
	}
	from := owner.GetNamespace()
	to := obj.GetNamespace()
	switch {
	case reference.APIVersion == "" || reference.Kind == "" || reference.Name == "" || reference.UID == "":
		return fail("incomplete owner (it needs apiVersion, kind, name and uid, as the server sets them)")
	case owner.GroupVersionKind().Group == metav1.GroupName:
		return fail("the owner's kind is that of a metadata-only response (set the apiVersion and kind of the object itself)")
	case from == "" || from == to:
		return reference, nil
	case to == "":
		return fail("the owner is in namespace %q, the object in none (set its namespace; a cluster-scoped object cannot have such an owner)", from)
	default:
		return fail("the owner is in namespace %q, the object in %q (owners are in the same namespace or in none)", from, to)
	}
}

func describe(obj *unstructured.Object) string {
	return fmt.Sprintf("%s %q", obj.GetKind(), obj.GetName())
}

// isSameOwner reports whether a and b have the same group, kind and name. The version and the UID (of a replaced owner) may
// differ.
func isSameOwner(a, b metav1.OwnerReference) bool {
	groupA, errA := schema.ParseGroupVersion(a.APIVersion)
	groupB, errB := schema.ParseGroupVersion(b.APIVersion)
	return errA == nil && errB == nil && groupA.Group == groupB.Group && a.Kind == b.Kind && a.Name == b.Name
}

func upsertOwner(obj *unstructured.Object, reference metav1.OwnerReference) {
	all := obj.GetOwnerReferences()
	i := slices.IndexFunc(all, func(other metav1.OwnerReference) bool { return isSameOwner(other, reference) })
	if i < 0 {
		all = append(all, reference)
	} else {
		all[i] = reference
	}
	obj.SetOwnerReferences(all)
}
