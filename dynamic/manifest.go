package dynamic

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"

	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ManifestObject is an object of a manifest, ready to be written: Resource.Apply(ctx, Object, opts).
type ManifestObject struct {
	// Resource is the handle on the object's resource, in the object's namespace or, if it has none, the config's.
	Resource *Resource
	// Object is the object that was read, or a changed copy.
	Object *unstructured.Object
	// Warning describes the change; empty if there was none.
	Warning string
}

// ForObjects finds the resource of each object of a manifest, such as those of [unstructured.YAMLDecoder.All], and yields
// both, in order. It reads the next object when the loop comes for it, so the loop's body writes one object before the
// resource of the next is looked up.
//
// An object may be of a kind that a CustomResourceDefinition before it defines. ForObjects then reads the definition,
// which the body must have created, and waits until it is established and discovery has its kinds; ctx bounds that. An
// object in front of its definition has no resource.
//
// The namespace of an object that is cluster-scoped is dropped, with a warning, as kubectl apply does silently; the verbs
// of [Resource] reject it. An error of objects is yielded as it is. An object whose resource is not found, with the errors
// of [Client.ForKind], ends the loop with an error that names the object.
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

// manifestDefinitions are the CustomResourceDefinitions of a manifest that have not been waited for, by what they define.
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
	if namespace := obj.GetNamespace(); namespace != "" && !resource.mapping.Namespaced {
		found.Resource, found.Object = c.ForMapping(resource.mapping), withoutNamespace(obj)
		found.Warning = fmt.Sprintf("%s %s: dropped namespace %s: %s is cluster-scoped", resource, quoted(obj.GetName()), quoted(namespace), printable(kind.Kind))
	}
	if isDefinition(resource.mapping) {
		definitions[definedKind(obj)] = found
	}
	return found, nil
}

// await waits until the definition of a kind is established, if it is one of the manifest's.
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

// withoutNamespace returns a copy of obj without its namespace. The rest is shared.
func withoutNamespace(obj *unstructured.Object) *unstructured.Object {
	changed := maps.Clone(obj.Object)
	metadata, _ := changed["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	delete(metadata, "namespace")
	changed["metadata"] = metadata
	return &unstructured.Object{Object: changed}
}
