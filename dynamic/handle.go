package dynamic

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// Handle reads and writes the objects of a resource, such as the deployments of apps/v1, in a single namespace or in all
// namespaces. Its verbs take and return objects as values of T:
//
//	deployments, err := client.Resource(ctx, "deploy") // a *Resource: T is unstructured.Object
//	obj, err := deployments.Namespace("shop").Get(ctx, "web", nil)
//	web, err := dynamic.As[appsv1.Deployment](deployments).Namespace("shop").Get(ctx, "web", nil)
//
// [Client.Resource] and other methods of [Client] return a [Resource]. [As] returns a handle with a different T.
//
// # Types of objects
//
// T is one of:
//
//   - [unstructured.Object], an object of any kind as maps and slices.
//   - [unstructured.Lazy], an object that stays as received until a field is read. It cannot be changed: write an
//     unstructured.Object.
//   - A struct with json tags, usually with metav1.TypeMeta and metav1.ObjectMeta embedded, such as a generated type. It is
//     converted by [unstructured.As] and [unstructured.From]. An object without kind and apiVersion is written with those of the
//     resource. Update replaces the whole object: fields that T lacks are lost. Upsert and Patch keep them, and Upsert drops
//     them only within the items of a changed list. Apply writes, and so owns, every field without omitempty or omitzero.
//   - metav1.PartialObjectMetadata, with [Handle.Metadata].
//   - A type with metadata and a decoder of its own, by [Decode].
//   - [TableRow], a row of the output of kubectl get, from [Handle.Tables]. It is only read, by Get, List, ListPage, Watch,
//     OpenWatch and Follow.
//
// The results of Delete, Scale, Evict and CreateToken do not depend on T.
//
// # Protobuf
//
// With transport.Options.Protobuf, Get, List, ListPage, Watch with a resourceVersion and Follow request built-in objects and the
// metadata of every kind as protobuf: https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding. The objects equal
// those of JSON. If a newer server sends an unknown field, the request is repeated as JSON, from the same object or event on, and the
// client requests JSON for the kind from then on.
//
// JSON are always: custom resources and tables, which servers send as JSON; responses of writes, because a write is not repeated for
// an unknown field; and Watch without a resourceVersion, whose initial events cannot be resumed (Follow lists again).
// docs/BENCHMARKS.md has the costs, client and server together.
//
// # Errors
//
// A call that cannot succeed returns an [*InvalidRequestError] without a request. Errors of the server are a
// *apierrors.StatusError, possibly within a more specific error of this package. An object that does not fit T is an error with
// the object's name, the path in it and both types: it ends a List, Watch or Follow.
//
// # Concurrency
//
// A handle is cheap, immutable and safe for concurrent use. Namespace, AllNamespaces, Named, Subresource, WithPageOptions,
// WithWaitOptions, Metadata, Tables, WithDefaults and OnWrite return changed copies, with the same T except for Tables.
type Handle[T any] struct {
	endpoint

	codec codec[T]
}

// Resource is a handle on objects of any kind.
type Resource = Handle[unstructured.Object]

// As returns a handle on the same resource for objects of type T: dynamic.As[Foo](foos). From a typed handle,
// dynamic.As[unstructured.Object](foos) returns a [Resource].
func As[T, From any](h *Handle[From]) *Handle[T] {
	typed := &Handle[T]{h.endpoint, codecOf[T]()}
	typed.hasGenerated = false
	_, isTable := any(typed).(*Handle[TableRow])
	if isTable != (typed.representation.kind == tableKind) {
		typed.representation = representation{}
		if isTable {
			typed.representation.kind = tableKind
		}
	}
	return typed
}

// Namespace sets the namespace. The default is the config's namespace, as in kubectl. On a cluster-scoped resource every verb
// then returns an error.
func (h *Handle[T]) Namespace(namespace string) *Handle[T] {
	changed := *h
	changed.namespace = namespace
	changed.scope = chosenNamespace
	return &changed
}

// AllNamespaces makes List, ListPage, Watch and Follow return the objects of every namespace. Create, Update and Apply then use
// the object's namespace. Verbs for a single named object, such as Get, return an error.
func (h *Handle[T]) AllNamespaces() *Handle[T] {
	changed := *h
	changed.namespace = ""
	changed.scope = allNamespaces
	return &changed
}

// Named selects a single object. "" selects all objects again. List, ListPage, Watch, Follow and DeleteCollection then use the
// field selector metadata.name: RBAC rules with resourceNames suffice, and a missing object is not an error. Verbs for single
// objects, including Create, Update and Apply, reject a different name. On a subresource, Create, Update and Apply send name in
// the path. There the object may be of any kind, with a different name or none:
//
//	serviceAccounts.Named("robot").Subresource("token").Create(ctx, tokenRequest, nil)
func (h *Handle[T]) Named(name string) *Handle[T] {
	changed := *h
	changed.name = name
	return &changed
}

// Subresource selects a subresource, such as "status" or "scale", for subsequent verbs. Verbs return an error if the server
// does not serve it. Create, Update and Apply write to the object named like the body, or to the object selected by
// [Handle.Named].
func (h *Handle[T]) Subresource(name string) *Handle[T] {
	changed := *h
	changed.subresource = name
	return &changed
}

// Metadata returns a handle on the same resource whose verbs return metadata only: Get, List, ListPage, Watch and Follow,
// and what Create, Update, Patch, Apply and Delete return. The objects have the apiVersion and kind of whole ones, so they
// can be owners and [Client.ForObject] finds their resource. Of large objects the server then sends, and the client
// decodes, a fraction. From a server without this representation, whole objects are fetched and reduced. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches.
//
// Objects are written whole. An update with metadata only would empty the stored object: Update returns an error if the
// managedFields list fields that the object lacks. Use Patch to change metadata. The fields of a struct besides its metadata are
// zero. With [Handle.Tables], the object of each row is metadata.
func (h *Handle[T]) Metadata() *Handle[T] {
	changed := *h
	if h.representation.kind == tableKind {
		changed.representation.include = metav1.IncludeMetadata
	} else {
		changed.representation = representation{kind: partialKind}
	}
	return &changed
}

// WithDefaults is like [Client.WithDefaults], but for a single handle.
func (h *Handle[T]) WithDefaults(defaults *Defaults) *Handle[T] {
	changed := *h
	set := valueOf(defaults)
	changed.defaults = h.defaults.with(set)
	if set.OnWarning != nil {
		changed.conn = h.conn.WithOnWarning(set.OnWarning)
	}
	if h.scope == defaultNamespace && !h.isScopeUnknown {
		changed.namespace = cmp.Or(set.Namespace, h.namespace)
	}
	return &changed
}

// Get returns an object or its subresource.
func (h *Handle[T]) Get(ctx context.Context, name string, opts *metav1.GetOptions) (*T, error) {
	request, err := h.objectRequest("get", name, queryOf(opts))
	if err != nil {
		return nil, err
	}
	obj, err := h.send(ctx, &h.endpoint, request)
	if err != nil && h.fallBackToJSON(err) {
		inJSON := &Handle[T]{*h.withJSON(), h.codec}
		return inJSON.Get(ctx, name, opts)
	}
	return obj, err
}

// send sends a request of e whose response is one object.
func (h *Handle[T]) send(ctx context.Context, e *endpoint, request *transport.Request) (obj *T, err error) {
	err = e.doAndDecode(ctx, request, func(header http.Header, body []byte) error {
		item, err := formOf(h.codec.form(), header).decodeItem(e, body)
		if err == nil {
			err = item.failure()
		}
		if err == nil {
			obj, err = h.codec.decode(e, item)
		}
		return err
	})
	return obj, err
}

// Create stores a new object and returns the stored object. obj is not changed. Without kind and apiVersion, obj gets the
// resource's. With metadata.generateName and no name, the server generates the name. On a subresource, such as "eviction",
// obj's name is the name of the target object, unless [Handle.Named] selects it.
func (h *Handle[T]) Create(ctx context.Context, obj *T, opts *metav1.CreateOptions) (*T, error) {
	return h.write(ctx, &h.endpoint, "create", jsonType, obj, queryOf(opts))
}

// Update replaces an object and returns the stored object. obj is not changed. If obj.metadata.resourceVersion is set and
// outdated, apierrors.IsConflict holds for the error: read, change and update again, or use [Handle.Upsert].
// Subresource("status").Update writes the status only.
func (h *Handle[T]) Update(ctx context.Context, obj *T, opts *metav1.UpdateOptions) (*T, error) {
	return h.write(ctx, &h.endpoint, "update", jsonType, obj, queryOf(opts))
}

// Apply sets the fields of obj (server-side apply) and returns the stored object. It creates the object if it does not exist.
// obj is not changed. A field manager is required, in opts or [Defaults]. It becomes the owner of the fields. If a different
// manager owns a field with a different value, Apply returns an [*ApplyConflictError], for which apierrors.IsConflict holds.
// opts.Force takes over such fields. See https://kubernetes.io/docs/reference/using-api/server-side-apply/.
func (h *Handle[T]) Apply(ctx context.Context, obj *T, opts *metav1.ApplyOptions) (*T, error) {
	if opts == nil {
		opts = &metav1.ApplyOptions{}
	}
	e := h.endpoint
	e.defaults.FieldValidation = "" // not a parameter of apply, which rejects unknown fields
	return h.write(ctx, &e, "patch", string(types.ApplyYAMLPatchType), obj, queryOf(opts))
}

// write encodes and sends obj, and decodes the stored object.
func (h *Handle[T]) write(ctx context.Context, e *endpoint, verb, contentType string, obj *T, query url.Values) (*T, error) {
	if obj == nil {
		return nil, e.invalid(verb, "", "the object is nil")
	}
	if err := e.rejectTables(verb, ""); err != nil {
		return nil, err
	}
	encoded, err := h.codec.encode(obj)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", verb, e, err)
	}
	target, request, err := e.writeRequest(verb, contentType, encoded, query)
	if err != nil {
		return nil, err
	}
	return h.send(ctx, target, request)
}

// writeRequest returns the request that writes obj, and the endpoint in the namespace of obj.
func (e *endpoint) writeRequest(verb, contentType string, obj *unstructured.Object, query url.Values) (*endpoint, *transport.Request, error) {
	if verb == "patch" && query.Get("fieldManager") == "" && e.defaults.FieldManager == "" {
		return nil, nil, e.invalid(verb, "", "apply needs a field manager (set ApplyOptions.FieldManager to your program's name)")
	}
	target, name, err := e.validateWrite(verb, obj)
	if err != nil {
		return nil, nil, err
	}
	body, err := unstructured.Encode(target.withKind(obj))
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s %q: encode the object: %w", verb, target, obj.GetName(), err)
	}
	request := target.newRequest(verb, name, query)
	setBody(request, contentType, body)
	return target, request, nil
}

// Patch changes parts of an object and returns the stored object. patch is always JSON. patchType is its format:
// types.JSONPatchType (RFC 6902), types.MergePatchType (RFC 7386), types.StrategicMergePatchType (built-in kinds only) or
// types.ApplyYAMLPatchType. For the latter, [Handle.Apply] is easier. See
// https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/.
func (h *Handle[T]) Patch(ctx context.Context, name string, patchType types.PatchType, patch []byte, opts *metav1.PatchOptions) (*T, error) {
	request, err := h.patchRequest(name, patchType, patch, queryOf(opts))
	if err != nil {
		return nil, err
	}
	return h.send(ctx, &h.endpoint, request)
}

func (e *endpoint) patchRequest(name string, patchType types.PatchType, patch []byte, query url.Values) (*transport.Request, error) {
	request, err := e.objectRequest("patch", name, query)
	if err != nil {
		return nil, err
	}
	switch patchType {
	case types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType:
	default:
		return nil, e.invalid("patch", name, "the patch type %q is none of apimachinery's types.*PatchType for JSON", patchType)
	}
	if len(patch) == 0 {
		return nil, e.invalid("patch", name, "the patch is empty (one that changes nothing is {} or, as a JSON patch, [])")
	}
	setBody(request, string(patchType), patch)
	return request, nil
}
