package controller

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/unstructured"
)

// UpdateEvent is an update of an object, as delivered by a cache. Both states are read-only and have the cache's type, except that
// unstructured.Lazy is decoded to unstructured.Object.
type UpdateEvent struct {
	// ObjectOld is the state of the last delivered change, even if a predicate has dropped this change. In a resync it is
	// ObjectNew.
	ObjectOld metav1.Object
	ObjectNew metav1.Object
	// Merged is set if the cache had further states between ObjectOld and ObjectNew: a reconcile may have read a value that has
	// changed back since.
	Merged bool
}

// Predicate reports whether an update of an object triggers a reconcile. It must be quick and only read the objects. A panic in a
// predicate ends [Run]: it would miss changes from then on.
//
// Only updates are dropped. A created or deleted object is always reconciled, and so are all objects of an initial list. A relist
// after a lost watch is an update for each changed object. Bookmarks are no changes. A resync is an update between equal states:
// the predicates of this package drop it.
//
// Predicates combine as functions:
//
//	func(e controller.UpdateEvent) bool { return controller.GenerationChanged(e) || controller.LabelChanged(e) }
type Predicate func(UpdateEvent) bool

// GenerationChanged is a [Predicate] for changes of metadata.generation: of the spec, and the start of a deletion. It drops
// updates of the status, of labels, annotations and finalizers. An object without a generation, such as a ConfigMap, passes
// unless the update is a resync.
func GenerationChanged(e UpdateEvent) bool {
	if e.ObjectNew.GetGeneration() == 0 {
		return ResourceVersionChanged(e)
	}
	return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
}

// ResourceVersionChanged is a [Predicate] for all updates but resyncs.
func ResourceVersionChanged(e UpdateEvent) bool {
	return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
}

// LabelChanged is a [Predicate] for changes of labels. A merged update passes.
func LabelChanged(e UpdateEvent) bool {
	return e.Merged || !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
}

// AnnotationChanged is a [Predicate] for changes of annotations. A merged update passes.
func AnnotationChanged(e UpdateEvent) bool {
	return e.Merged || !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
}

// Passes reports whether a change triggers a reconcile: whether it is no update, or all predicates return true. It is for a
// [Keys].Enqueue with predicates. A panic in a predicate is a [*cache.PanicError].
func Passes[T any](predicates []Predicate, change cache.Change[T]) (passed bool, err error) {
	if len(predicates) == 0 || change.Type != watch.Modified {
		return true, nil
	}
	event := UpdateEvent{Merged: change.Merged}
	if event.ObjectOld, err = metadataOf(change.Old); err != nil {
		return false, err
	}
	if event.ObjectNew, err = metadataOf(change.Object); err != nil {
		return false, err
	}
	defer contain(&err, "a Predicate", change.Object)
	for _, predicate := range predicates {
		if !predicate(event) {
			return false, nil
		}
	}
	return true, nil
}

func metadataOf[T any](obj *T) (metav1.Object, error) {
	switch obj := any(obj).(type) {
	case metav1.Object:
		return obj, nil
	case *unstructured.Lazy:
		return obj.Object()
	default:
		return nil, fmt.Errorf("evaluate a Predicate: a %T is no metav1.Object (embed metav1.ObjectMeta)", obj)
	}
}
