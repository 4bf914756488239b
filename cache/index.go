package cache

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Label makes an index of a label's values.
func Label[T any, P Object[T]](name string) func(*T) []string {
	return func(obj *T) []string {
		if value, has := P(obj).GetLabels()[name]; has {
			return []string{value}
		}
		return nil
	}
}

// Owner is an index of the UIDs of an object's owners, for objects that tell them, such as *unstructured.Object.
func Owner[T any, P interface {
	Object[T]
	GetOwnerReferences() []metav1.OwnerReference
}](obj *T) []string {
	var owners []string
	for _, owner := range P(obj).GetOwnerReferences() {
		owners = append(owners, string(owner.UID))
	}
	return owners
}
