package command

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
	"github.com/anykind/anykind/unstructured/manifest"
)

// establishTimeout limits the wait for the definition of an object's kind.
const establishTimeout = 30 * time.Second

// FileResolver finds the resources of objects in files, including resources defined in the files themselves.
type FileResolver struct {
	client      *dynamic.Client
	definitions map[schema.GroupKind]*unstructured.Object // not known to be established
	// namespace is the value of --namespace, or "".
	namespace string
}

// NewFileResolver returns a FileResolver with the client of the connection flags.
func (s *State) NewFileResolver(ctx context.Context) (*FileResolver, error) {
	client, err := s.Client(ctx)
	if err != nil {
		return nil, err
	}
	return newFileResolver(client, s.Connection.NamespaceFlag), nil
}

func newFileResolver(client *dynamic.Client, namespace string) *FileResolver {
	return &FileResolver{client: client, definitions: map[schema.GroupKind]*unstructured.Object{}, namespace: namespace}
}

// Resolve returns the handle on the resource of an object, as [dynamic.Client.ForObjects] does. If an earlier object was
// the CustomResourceDefinition of its kind, Resolve waits until the definition is established. The caller must have created it before.
// Resolve rejects an object in a namespace other than --namespace. All other errors have the object's position.
func (r *FileResolver) Resolve(ctx context.Context, obj *manifest.Object) (*dynamic.ManifestObject, error) {
	kind := obj.GroupVersionKind()
	definition := r.definitions[kind.GroupKind()]
	found, err := r.resolve(ctx, obj, definition)
	if err != nil {
		return nil, ResolveError(obj, err)
	}
	delete(r.definitions, kind.GroupKind())
	if defined, isDefinition := dynamic.DefinedKind(obj.Object); isDefinition {
		r.definitions[defined] = found.Object
	}
	if own := found.Object.GetNamespace(); r.namespace != "" && own != "" && own != r.namespace {
		return nil, fmt.Errorf("the namespace from the provided object %q does not match the namespace %q. You must pass '--namespace=%s' to perform this operation.", own, r.namespace, own)
	}
	return found, nil
}

func (r *FileResolver) resolve(ctx context.Context, obj *manifest.Object, definition *unstructured.Object) (*dynamic.ManifestObject, error) {
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

// ResolveError formats a NoMatchError like kubectl, and adds the position to any error.
func ResolveError(obj *manifest.Object, err error) error {
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
func InstallOrder(objects []*manifest.Object, namespace string) ([]*manifest.Object, error) {
	plain := make([]*unstructured.Object, len(objects))
	sources := make(map[*unstructured.Object]*manifest.Object, len(objects))
	for i, obj := range objects {
		plain[i] = obj.Object
		sources[obj.Object] = obj
	}
	plan, err := dynamic.InstallOrder(plain, namespace)
	if err != nil {
		return nil, err
	}
	ordered := make([]*manifest.Object, 0, len(objects))
	for _, stage := range plan.Stages {
		for _, obj := range stage {
			ordered = append(ordered, sources[obj])
		}
	}
	return ordered, nil
}
