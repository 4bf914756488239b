package resource

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// establishTimeout limits the wait for the definition of an object's kind.
const establishTimeout = 30 * time.Second

// Resolver finds the resources of objects in files, including resources defined in the files themselves.
type Resolver struct {
	client      *dynamic.Client
	definitions map[schema.GroupKind]*unstructured.Object // not known to be established
	// required is the value of --namespace, or "".
	required string
	// namespace is the namespace of objects without a namespace.
	namespace string
}

// NewResolver returns a Resolver with the client of a connection.
func NewResolver(ctx context.Context, c *flags.Connection) (*Resolver, error) {
	client, err := c.Client(ctx)
	if err != nil {
		return nil, err
	}
	namespace, _, err := c.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	return newResolver(client, c.NamespaceFlag, namespace), nil
}

func newResolver(client *dynamic.Client, required, namespace string) *Resolver {
	return &Resolver{client: client, definitions: map[schema.GroupKind]*unstructured.Object{}, required: required, namespace: namespace}
}

// Resolve finds the resource of an object, as [dynamic.Client.ForObjects] does. If an earlier object was
// the CustomResourceDefinition of its kind, Resolve waits until the definition is established. The caller must have created it before.
// Resolve rejects an object in a namespace other than --namespace. Errors, except for this error, have the object's position.
func (r *Resolver) Resolve(ctx context.Context, obj *manifest.Object) (*Info, error) {
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
	if own := found.Object.GetNamespace(); r.required != "" && own != "" && own != r.required {
		return nil, fmt.Errorf("the namespace from the provided object %q does not match the namespace %q. You must pass '--namespace=%s' to perform this operation.", own, r.required, own)
	}
	return newInfo(found.Resource, found.Object, obj.Source, r.namespace), nil
}

func (r *Resolver) resolve(ctx context.Context, obj *manifest.Object, definition *unstructured.Object) (*dynamic.ManifestObject, error) {
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
	return exit.WithText(err, fmt.Sprintf("resource mapping not found for name: %q namespace: %q from %q: no matches for kind %q in version %q\n%s: %v",
		obj.GetName(), obj.GetNamespace(), obj.Source, kind.Kind, kind.GroupVersion(), obj.Position(), noMatch))
}

// InstallOrder returns the objects in the order of [dynamic.InstallOrder], stage by stage. namespace is the namespace of
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
