package manifest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/unstructured"
)

// establishTimeout limits the wait for the definition of an object's kind.
const establishTimeout = 30 * time.Second

// Resolver finds the resources of the objects of a manifest, including resources defined in the manifest itself.
type Resolver struct {
	client      *dynamic.Client
	definitions map[schema.GroupKind]*unstructured.Object // not known to be established
}

// NewResolver returns a resolver with a client.
func NewResolver(client *dynamic.Client) *Resolver {
	return &Resolver{client: client, definitions: map[schema.GroupKind]*unstructured.Object{}}
}

// Resolve returns the handle on the resource of an object, as [dynamic.Client.ForObjects] does. If an earlier object was
// the CustomResourceDefinition of its kind, Resolve waits until the definition is established. The caller must have created it before.
// Errors have the object's position.
func (r *Resolver) Resolve(ctx context.Context, obj *Object) (*dynamic.ManifestObject, error) {
	kind := obj.GroupVersionKind()
	definition := r.definitions[kind.GroupKind()]
	found, err := r.resolve(ctx, obj, definition)
	if err != nil {
		return nil, resolveError(obj, err)
	}
	delete(r.definitions, kind.GroupKind())
	if defined, isDefinition := definedKind(obj.Object); isDefinition {
		r.definitions[defined] = found.Object
	}
	return found, nil
}

func (r *Resolver) resolve(ctx context.Context, obj *Object, definition *unstructured.Object) (*dynamic.ManifestObject, error) {
	if definition != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, establishTimeout)
		defer cancel()
	}
	isFirst := definition != nil
	for found, err := range r.client.ForObjects(ctx, sequence(definition, obj.Object)) {
		if err != nil || !isFirst {
			return found, err
		}
		isFirst = false
	}
	return nil, errors.New("resolve the resource: no result") // ForObjects yields each object or an error
}

// sequence yields a non-nil definition and obj.
func sequence(definition, obj *unstructured.Object) iter.Seq2[*unstructured.Object, error] {
	return func(yield func(*unstructured.Object, error) bool) {
		if definition == nil || yield(definition, nil) {
			yield(obj, nil)
		}
	}
}

// resolveError formats a NoMatchError like kubectl, and adds the position to any error.
func resolveError(obj *Object, err error) error {
	var noMatch *restmapper.NoMatchError
	if !errors.As(err, &noMatch) {
		return fmt.Errorf("%s: %w", obj.Position(), err)
	}
	kind := obj.GroupVersionKind()
	return &notServedError{
		text: fmt.Sprintf("resource mapping not found for name: %q namespace: %q from %q: no matches for kind %q in version %q\n%s: %v",
			obj.GetName(), obj.GetNamespace(), obj.Source, kind.Kind, kind.GroupVersion(), obj.Position(), noMatch),
		err: err,
	}
}

// notServedError is the error of an object with an unserved kind.
type notServedError struct {
	text string
	err  error
}

func (e *notServedError) Error() string { return e.text }
func (e *notServedError) Unwrap() error { return e.err }

// InstallOrder returns the objects in the order of [dynamic.InstallOrder], one stage after the other. namespace is the namespace of
// namespaced objects that name none.
func InstallOrder(objects []*Object, namespace string) ([]*Object, error) {
	plain := make([]*unstructured.Object, len(objects))
	sources := make(map[*unstructured.Object]*Object, len(objects))
	for i, obj := range objects {
		plain[i] = obj.Object
		sources[obj.Object] = obj
	}
	stages, err := dynamic.InstallOrder(plain, namespace)
	if err != nil {
		return nil, err
	}
	ordered := make([]*Object, 0, len(objects))
	for _, stage := range stages {
		for _, obj := range stage {
			ordered = append(ordered, sources[obj])
		}
	}
	return ordered, nil
}

// definedKind returns the kind of a CustomResourceDefinition.
func definedKind(obj *unstructured.Object) (schema.GroupKind, bool) {
	own := obj.GroupVersionKind()
	if own.Group != "apiextensions.k8s.io" || own.Kind != "CustomResourceDefinition" {
		return schema.GroupKind{}, false
	}
	group, _, _ := unstructured.Get[string](obj, "spec", "group") // the API server reports a wrong type
	kind, _, _ := unstructured.Get[string](obj, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}, true
}
