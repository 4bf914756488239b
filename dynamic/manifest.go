package dynamic

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/unstructured"
)

// ManifestObject is an object of a manifest with its resource: Resource.Apply(ctx, Object, opts).
type ManifestObject struct {
	// Resource is the handle on the object's resource, in the object's namespace, or in the config's if the object has none.
	Resource *Resource
	// Object is the original object, or a changed copy.
	Object *unstructured.Object
	// Warning describes the change. It is empty for an unchanged object.
	Warning string
}

// ForObjects looks up the resource of each object of a manifest and yields both, in order. objects is, for example,
// [unstructured.YAMLDecoder.All]. It is read lazily: the loop's body writes an object before the resource of the next object is
// looked up.
//
// If an earlier CustomResourceDefinition of the manifest defines the kind of an object, ForObjects waits until the definition
// is established and discovery serves its kinds. The body must have created the definition. ctx bounds the wait. An object in
// front of its definition has no resource: [InstallOrder] sorts the objects of a manifest that is in memory.
//
// The namespace of a cluster-scoped object is dropped, with a warning; kubectl apply drops it silently. The verbs of [Resource]
// reject such an object. An error of objects is yielded unchanged. If the resource of an object is not found, the loop ends
// with an error that names the object and wraps the error of [Client.ForKind].
func (c *Client) ForObjects(ctx context.Context, objects iter.Seq2[*unstructured.Object, error]) iter.Seq2[*ManifestObject, error] {
	return func(yield func(*ManifestObject, error) bool) {
		definitions := manifestDefinitions{}
		for obj, err := range objects {
			var found *ManifestObject
			if err == nil {
				found, err = c.forManifestObject(ctx, obj, definitions)
			}
			if !yield(found, err) || err != nil {
				return
			}
		}
	}
}

// manifestDefinitions maps each kind to its CustomResourceDefinition in the manifest. Entries are removed after a successful
// wait.
type manifestDefinitions map[schema.GroupKind]*ManifestObject

func (c *Client) forManifestObject(ctx context.Context, obj *unstructured.Object, definitions manifestDefinitions) (*ManifestObject, error) {
	if obj == nil {
		return nil, errors.New("find the resource of an object: the object is nil")
	}
	kind := obj.GroupVersionKind()
	err := definitions.await(ctx, kind.GroupKind())
	var resource *Resource
	if err == nil {
		resource, err = c.ForObject(ctx, obj)
	}
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s %s: %w", printable(kind.Kind), quoted(obj.GetName()), err)
	}
	found := &ManifestObject{Resource: resource, Object: obj}
	if namespace := obj.GetNamespace(); namespace != "" && !resource.apiResource.Namespaced {
		found.Resource = c.ForAPIResource(resource.apiResource)
		found.Object = withoutNamespace(obj)
		found.Warning = fmt.Sprintf("%s %s: dropped namespace %s: %s is cluster-scoped", resource, quoted(obj.GetName()), quoted(namespace), printable(kind.Kind))
	}
	if isDefinition(resource.apiResource) {
		definitions[definedKind(obj)] = found
	}
	return found, nil
}

// await waits until the definition of kind is established, if the manifest contains it.
func (d manifestDefinitions) await(ctx context.Context, kind schema.GroupKind) error {
	definition := d[kind]
	if definition == nil {
		return nil
	}
	name := definition.Object.GetName()
	if _, err := definition.Resource.Get(ctx, name, nil); apierrors.IsNotFound(err) {
		return fmt.Errorf("its CustomResourceDefinition %s is in front of it, but has not been created: %w", quoted(name), err)
	}
	if _, err := definition.Resource.Wait(ctx, name, Condition("Established")); err != nil {
		return err
	}
	delete(d, kind)
	return nil
}

// withoutNamespace returns a copy of obj without its namespace. All other fields are shared with obj.
func withoutNamespace(obj *unstructured.Object) *unstructured.Object {
	changed := maps.Clone(obj.Object)
	metadata, _ := changed["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	delete(metadata, "namespace")
	changed["metadata"] = metadata
	return &unstructured.Object{Object: changed}
}
