package write

import (
	"context"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

// operation is the execution of one request.
type operation struct {
	*Writer
	ctx         context.Context
	req         *Request
	resource    *kinds.Resource
	subresource string
	rules       rules
	options     writeOptions
	manager     string // field manager
	isPost      bool   // a create by POST, not by update or apply
	warnings    []string
	isOfMany    bool // part of a deletecollection
	isUntyped   bool // the body is a Scale without an apiVersion
}

func (w *Writer) begin(ctx context.Context, req *Request) *operation {
	return &operation{Writer: w, ctx: ctx, req: req, resource: req.Resource, subresource: req.Subresource, rules: w.rulesOf(req.Resource)}
}

func (op *operation) warn(text string) {
	if text != "" && !slices.Contains(op.warnings, text) {
		op.warnings = append(op.warnings, text)
	}
}

// finish adds the warnings and converts the error to a Status.
func (op *operation) finish(result *Result, err *error) {
	result.Warnings = op.warnings
	*err = statusError(*err)
}

func (op *operation) groupResource() schema.GroupResource { return op.resource.GroupResource() }

func (op *operation) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: op.resource.Group, Kind: op.resource.Kind}
}

// kind returns the GVK of the request body: the subresource's GVK if it has its own.
func (op *operation) kind() schema.GroupVersionKind {
	if sub, ok := op.resource.Subresources[op.subresource]; ok && sub.Kind != "" && sub.Kind != op.resource.Kind {
		return schema.GroupVersionKind{Group: sub.Group, Version: sub.Version, Kind: sub.Kind}
	}
	return op.resource.GroupVersionKind()
}

func (op *operation) key(name string) store.Key { return keyOf(op.resource, op.req.Namespace, name) }

func keyOf(resource *kinds.Resource, namespace, name string) store.Key {
	if !resource.Namespaced {
		namespace = ""
	}
	return store.Key{Group: resource.Group, Resource: resource.Plural, Namespace: namespace, Name: name}
}

// objectNamespace returns the namespace of the request's objects, "" for a cluster-scoped resource.
func (op *operation) objectNamespace() string {
	if op.resource.Namespaced {
		return op.req.Namespace
	}
	return ""
}

// displayName returns the name of an object, or its generateName.
func displayName(obj *unstructured.Unstructured) string {
	if name := obj.GetName(); name != "" {
		return name
	}
	return obj.GetGenerateName()
}

// namespaceForAdmission returns the request's namespace. For a namespace it is the namespace's name.
func (op *operation) namespaceForAdmission(name string) string {
	if op.resource.Group == "" && op.resource.Plural == "namespaces" {
		return name
	}
	return op.objectNamespace()
}

// ensureNamespace sets the object's namespace to the request's, or rejects a different namespace.
func (op *operation) ensureNamespace(obj *unstructured.Unstructured) error {
	want := op.objectNamespace()
	switch got := obj.GetNamespace(); {
	case got == want:
	case got == "", want == "":
		obj.SetNamespace(want)
	default:
		return apierrors.NewBadRequest(namespaceMismatch)
	}
	return nil
}

// checkName rejects an object with a name different from the request's.
func (op *operation) checkName(obj *unstructured.Unstructured) error {
	name := obj.GetName()
	if name == "" {
		return apierrors.NewBadRequest("the name of the object (" + op.req.Name + " based on URL) was undeterminable: name must be provided")
	}
	if name != op.req.Name {
		return apierrors.NewBadRequest("the name of the object (" + name + ") does not match the name on the URL (" + op.req.Name + ")")
	}
	return nil
}

// dedupeOwners removes equal owner references and adds a warning. The warning's text depends on afterAdmission.
func (op *operation) dedupeOwners(obj *unstructured.Unstructured, afterAdmission bool) {
	owners := obj.GetOwnerReferences()
	var unique []metav1.OwnerReference
	var duplicates []string
	for _, owner := range owners {
		if containsOwner(unique, owner) {
			duplicates = append(duplicates, string(owner.UID))
		} else {
			unique = append(unique, owner)
		}
	}
	if len(duplicates) == 0 {
		return
	}
	obj.SetOwnerReferences(unique)
	text := ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
	if afterAdmission {
		text = ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
	}
	op.warn(text + strings.Join(duplicates, ", "))
}

func containsOwner(owners []metav1.OwnerReference, owner metav1.OwnerReference) bool {
	for _, o := range owners {
		if equalBool(o.Controller, owner.Controller) && equalBool(o.BlockOwnerDeletion, owner.BlockOwnerDeletion) &&
			o.APIVersion == owner.APIVersion && o.Kind == owner.Kind && o.Name == owner.Name && o.UID == owner.UID {
			return true
		}
	}
	return false
}

func equalBool(a, b *bool) bool { return a == b || a != nil && b != nil && *a == *b }

// view returns a copy of a stored object in the request's version.
func (op *operation) view(stored store.Object) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: op.viewOf(op.resource, stored)}
}

// View returns a stored object in the version of a resource. The result is read-only: it may be the stored object itself.
func (w *Writer) View(resource *kinds.Resource, stored store.Object) map[string]any {
	if resource.Definition == nil && stored["apiVersion"] == resource.APIVersion() {
		return asRead(resource, stored)
	}
	return asRead(resource, w.viewOf(resource, stored))
}

// asRead returns an object as shown in responses: a service of type ExternalName loses fields of its earlier type. Responses to
// deletions with finalizers do not use it.
func asRead(resource *kinds.Resource, obj map[string]any) map[string]any {
	if resource.Group != "" || resource.Plural != "services" {
		return obj
	}
	spec := nested.Map(obj, "spec")
	if spec["type"] != "ExternalName" || spec["internalTrafficPolicy"] == nil {
		return obj
	}
	obj = maps.Clone(obj)
	spec = maps.Clone(spec)
	delete(spec, "internalTrafficPolicy")
	obj["spec"] = spec
	return obj
}

func (w *Writer) viewOf(resource *kinds.Resource, stored store.Object) map[string]any {
	obj := runtime.DeepCopyJSON(stored)
	w.rulesOf(resource).fromStorage(obj)
	return obj
}

func (op *operation) asRead(obj *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: asRead(op.resource, obj.Object)}
}

// toStorage returns the object in its storage version, without a resourceVersion.
func (op *operation) toStorage(obj *unstructured.Unstructured) store.Object {
	stored := obj.DeepCopy()
	op.rules.toStorage(stored.Object)
	stored.SetResourceVersion("")
	stored.SetSelfLink("")
	return stored.Object
}

func storageVersion(resource *kinds.Resource) string {
	version := resource.StorageVersion
	if version == "" {
		version = resource.Version
	}
	return schema.GroupVersion{Group: resource.Group, Version: version}.String()
}

// empty returns an object of the request's kind without content, in place of a missing object.
func (op *operation) empty() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(op.kind())
	return obj
}
