package controller

import (
	"fmt"
	"slices"

	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OwnedError says that an object has a controller already, and that it is another one.
type OwnedError struct {
	// Object names the object: Deployment "web".
	Object string
	// Controller is who it belongs to.
	Controller metav1.OwnerReference
}

func (e *OwnedError) Error() string {
	return fmt.Sprintf("%s is controlled by %s %q: an object has one controller", e.Object, e.Controller.Kind, e.Controller.Name)
}

// SetControllerReference makes owner the controller of obj, in obj's metadata.ownerReferences: the garbage collector
// deletes obj when owner is gone, a foreground deletion of owner waits for obj, and nobody else may control it. An older
// reference to owner is replaced; other references stay.
//
// owner is an object as the server gave it, with its own apiVersion and kind, which a PartialObjectMetadata does not have.
// Refused, and obj left as it is: an obj that another object controls, with a
// *[OwnedError]; and an owner in another namespace than obj, or in one where obj is in none, which the garbage collector
// would take for gone: obj then says its namespace first. See
// https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/.
func SetControllerReference(owner, obj *unstructured.Object) error {
	reference, err := referenceTo(owner, obj)
	if err != nil {
		return err
	}
	if current := metav1.GetControllerOf(obj); current != nil && !sameOwner(*current, reference) {
		return &OwnedError{Object: called(obj), Controller: *current}
	}
	yes := true
	reference.Controller, reference.BlockOwnerDeletion = &yes, &yes
	refer(obj, reference)
	return nil
}

// SetOwnerReference makes owner an owner of obj, of which there may be several: the garbage collector deletes obj when
// the last of them is gone. Where owner is obj's controller it stays so. What is refused is as with
// [SetControllerReference], but for the other controller.
func SetOwnerReference(owner, obj *unstructured.Object) error {
	reference, err := referenceTo(owner, obj)
	if err != nil {
		return err
	}
	for _, current := range obj.GetOwnerReferences() {
		if sameOwner(current, reference) {
			reference.Controller, reference.BlockOwnerDeletion = current.Controller, current.BlockOwnerDeletion
		}
	}
	refer(obj, reference)
	return nil
}

// referenceTo makes a reference, if owner can own obj.
func referenceTo(owner, obj *unstructured.Object) (metav1.OwnerReference, error) {
	reference := metav1.OwnerReference{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
	}
	if reference.APIVersion == "" || reference.Kind == "" || reference.Name == "" || reference.UID == "" {
		return reference, fmt.Errorf("make %s the owner of %s: the owner needs apiVersion, kind, name and uid, as the server gives them", called(owner), called(obj))
	}
	if isMetaKind(owner) {
		return reference, fmt.Errorf("make %s the owner of %s: the kind is that of a metadata-only answer: set the apiVersion and kind of the object itself", called(owner), called(obj))
	}
	from, to := owner.GetNamespace(), obj.GetNamespace()
	switch {
	case from == "" || from == to:
		return reference, nil
	case to == "":
		return reference, fmt.Errorf("make %s the owner of %s: the owner is in namespace %q, the object in none: set its namespace; a cluster-scoped object cannot have such an owner", called(owner), called(obj), from)
	}
	return reference, fmt.Errorf("make %s the owner of %s: the owner is in namespace %q, the object in %q: owners are in the same namespace or in none", called(owner), called(obj), from, to)
}

// isMetaKind reports whether an object says a kind of meta.k8s.io, such as PartialObjectMetadata, instead of its own.
func isMetaKind(obj *unstructured.Object) bool {
	return obj.GroupVersionKind().Group == metav1.GroupName
}

func called(obj *unstructured.Object) string {
	return fmt.Sprintf("%s %q", obj.GetKind(), obj.GetName())
}

// sameOwner tells if two references mean the same object, or one that has taken its name; the version may differ.
func sameOwner(a, b metav1.OwnerReference) bool {
	groupA, errA := schema.ParseGroupVersion(a.APIVersion)
	groupB, errB := schema.ParseGroupVersion(b.APIVersion)
	return errA == nil && errB == nil && groupA.Group == groupB.Group && a.Kind == b.Kind && a.Name == b.Name
}

func refer(obj *unstructured.Object, reference metav1.OwnerReference) {
	all := obj.GetOwnerReferences()
	at := slices.IndexFunc(all, func(other metav1.OwnerReference) bool { return sameOwner(other, reference) })
	if at < 0 {
		all = append(all, reference)
	} else {
		all[at] = reference
	}
	obj.SetOwnerReferences(all)
}
