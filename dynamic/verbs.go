package dynamic

import (
	"context"
	"fmt"

	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Get returns an object or its subresource.
func (r *Resource) Get(ctx context.Context, name string, opts *metav1.GetOptions) (*unstructured.Object, error) {
	return getAs(ctx, r, name, opts, r.objectDecoder())
}

func getAs[T any](ctx context.Context, r *Resource, name string, opts *metav1.GetOptions, decoder decoder[T]) (*T, error) {
	request, err := objectRequest(r, "get", name, opts)
	if err != nil {
		return nil, err
	}
	return doAndDecode(ctx, r, request, r.limits(), decoder.object)
}

// Create stores a new object and returns the stored object. obj is not changed. Without kind and apiVersion, obj gets the
// resource's. With metadata.generateName and no name, the server generates the name. On a subresource, such as "eviction",
// obj's name is the name of the target object, unless [Resource.Named] selects it.
func (r *Resource) Create(ctx context.Context, obj *unstructured.Object, opts *metav1.CreateOptions) (*unstructured.Object, error) {
	return writeAs(ctx, r, "create", jsonType, obj, opts, r.objectDecoder())
}

// Update replaces an object and returns the stored object. obj is not changed. If obj.metadata.resourceVersion is set and
// outdated, apierrors.IsConflict holds for the error: read, change and update again, or use [Resource.Upsert].
// Subresource("status").Update writes the status only.
func (r *Resource) Update(ctx context.Context, obj *unstructured.Object, opts *metav1.UpdateOptions) (*unstructured.Object, error) {
	return writeAs(ctx, r, "update", jsonType, obj, opts, r.objectDecoder())
}

// Apply sets the fields of obj (server-side apply) and returns the stored object. It creates the object if it does not exist.
// obj is not changed. A field manager is required, in opts or [Defaults]. It becomes the owner of the fields. If a different
// manager owns a field with a different value, Apply returns an [*ApplyConflictError], for which apierrors.IsConflict holds.
// opts.Force takes over such fields. See https://kubernetes.io/docs/reference/using-api/server-side-apply/.
func (r *Resource) Apply(ctx context.Context, obj *unstructured.Object, opts *metav1.ApplyOptions) (*unstructured.Object, error) {
	return applyAs(ctx, r, obj, opts, r.objectDecoder())
}

func applyAs[T any](ctx context.Context, r *Resource, obj *unstructured.Object, opts *metav1.ApplyOptions, decoder decoder[T]) (*T, error) {
	if opts == nil {
		opts = &metav1.ApplyOptions{}
	}
	if opts.FieldManager == "" && r.defaults.FieldManager == "" {
		return nil, r.invalid("patch", "", "apply needs a field manager (set ApplyOptions.FieldManager to your program's name)")
	}
	return writeAs(ctx, r, "patch", string(types.ApplyYAMLPatchType), obj, opts, decoder)
}

// writeAs validates and sends obj and decodes the stored object.
func writeAs[T, Options any](ctx context.Context, r *Resource, verb, contentType string, obj *unstructured.Object, opts *Options, decoder decoder[T]) (*T, error) {
	r, name, err := r.validateWrite(verb, obj)
	if err != nil {
		return nil, err
	}
	request := newRequest(r, verb, name, opts)
	body, err := unstructured.Encode(r.withKind(obj))
	if err != nil {
		return nil, fmt.Errorf("%s %s %q: encode the object: %w", verb, r, obj.GetName(), err)
	}
	setBody(request, contentType, body)
	return doAndDecode(ctx, r, request, r.limits(), decoder.object)
}

// Patch changes parts of an object and returns the stored object. patch is always JSON. patchType is its format:
// types.JSONPatchType (RFC 6902), types.MergePatchType (RFC 7386), types.StrategicMergePatchType (built-in kinds only) or
// types.ApplyYAMLPatchType. For the latter, [Resource.Apply] is easier. See
// https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/.
func (r *Resource) Patch(ctx context.Context, name string, patchType types.PatchType, patch []byte, opts *metav1.PatchOptions) (*unstructured.Object, error) {
	return patchAs(ctx, r, name, patchType, patch, opts, r.objectDecoder())
}

func patchAs[T any](ctx context.Context, r *Resource, name string, patchType types.PatchType, patch []byte, opts *metav1.PatchOptions, decoder decoder[T]) (*T, error) {
	request, err := objectRequest(r, "patch", name, opts)
	if err != nil {
		return nil, err
	}
	switch patchType {
	case types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType:
	default:
		return nil, r.invalid("patch", name, "the patch type %q is none of apimachinery's types.*PatchType for JSON", patchType)
	}
	if len(patch) == 0 {
		return nil, r.invalid("patch", name, "the patch is empty (one that changes nothing is {} or, as a JSON patch, [])")
	}
	setBody(request, string(patchType), patch)
	return doAndDecode(ctx, r, request, r.limits(), decoder.object)
}
