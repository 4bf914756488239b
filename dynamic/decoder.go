package dynamic

import (
	"fmt"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// decoder decodes the responses of a server: one object, the items of a list, or the events of a watch. getAs, listAs and the
// like are the verbs of handles for any of them.
type decoder[T any] interface {
	// object must not retain body.
	object(limits unstructured.Limits, body []byte) (*T, error)
	// listItem returns io.EOF itself after the last item.
	listItem(list *unstructured.ListDecoder) (*T, error)
	// event returns io.EOF itself at the end of the watch, and the Status of an ERROR event as an error.
	event(events *unstructured.WatchDecoder) (unstructured.Event[T], error)
	// interner is for lists and watches, nil for none.
	interner() *jsonread.Interner
}

// objectDecoder decodes whole objects into the handle's representation.
type objectDecoder struct {
	resource *Resource
	shared   *jsonread.Interner // nil for none
}

func (r *Resource) objectDecoder() decoder[unstructured.Object] { return &objectDecoder{resource: r} }

func (d *objectDecoder) object(limits unstructured.Limits, body []byte) (*unstructured.Object, error) {
	obj, err := limits.Decode(body)
	if err != nil {
		return nil, notObjectError(err)
	}
	return d.resource.represent(obj), nil
}

func (d *objectDecoder) listItem(list *unstructured.ListDecoder) (*unstructured.Object, error) {
	obj, err := list.Next()
	if err != nil {
		return nil, err
	}
	return d.resource.represent(obj), nil
}

func (d *objectDecoder) event(events *unstructured.WatchDecoder) (unstructured.Event[unstructured.Object], error) {
	event, err := events.Next()
	if err == nil && event.Type == watch.Error {
		err = eventError(event.Object)
	}
	if err != nil {
		return unstructured.Event[unstructured.Object]{}, err
	}
	event.Object = d.resource.represent(event.Object)
	return event, nil
}

func (d *objectDecoder) interner() *jsonread.Interner { return d.shared }

// convertingDecoder decodes lazy objects and converts each to T.
type convertingDecoder[T any] func(*unstructured.Lazy) (*T, error)

func (convert convertingDecoder[T]) object(limits unstructured.Limits, body []byte) (*T, error) {
	obj, err := limits.DecodeLazy(body)
	if err != nil {
		return nil, notObjectError(err)
	}
	return convert(obj)
}

func (convert convertingDecoder[T]) listItem(list *unstructured.ListDecoder) (*T, error) {
	obj, err := list.NextLazy()
	if err != nil {
		return nil, err
	}
	return convert(obj)
}

func (convert convertingDecoder[T]) event(events *unstructured.WatchDecoder) (unstructured.Event[T], error) {
	event, err := events.NextLazy()
	if err != nil {
		return unstructured.Event[T]{}, err
	}
	if event.Type == watch.Error {
		obj, err := event.Object.Object()
		if err == nil {
			err = eventError(obj)
		}
		return unstructured.Event[T]{}, err
	}
	obj, err := convert(event.Object)
	return unstructured.Event[T]{Type: event.Type, Object: obj}, err
}

func (convertingDecoder[T]) interner() *jsonread.Interner { return nil }

func notObjectError(err error) error {
	return fmt.Errorf("the response is not a Kubernetes object: %w", err)
}

// isStatus reports whether obj is a Status, which some aggregated API servers send without an apiVersion.
func isStatus(obj *unstructured.Object) bool {
	return obj.GetKind() == "Status" && (obj.GetAPIVersion() == "v1" || obj.GetAPIVersion() == "")
}

func decodeStatus(obj *unstructured.Object) (*metav1.Status, error) {
	status := &metav1.Status{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, status); err != nil {
		return nil, fmt.Errorf("decode the server's Status: %w", err)
	}
	return status, nil
}

func eventError(obj *unstructured.Object) error {
	status, err := decodeStatus(obj)
	if err != nil {
		return err
	}
	return statusError(status)
}

func statusError(status *metav1.Status) error {
	sanitize.Status(status)
	return apierrors.FromObject(status)
}

const (
	metaVersion = "meta.k8s.io/v1" // the apiVersion of the representations
	partialKind = "PartialObjectMetadata"
	tableKind   = "Table"
)

// representation is how the server is to return objects; the zero value is as they are.
type representation struct {
	kind    string // partialKind or tableKind
	include metav1.IncludeObjectPolicy
}

// accept returns the Accept header for the representation, and for whole objects from servers without it.
func (r representation) accept(isList bool) string {
	kind := r.kind
	if kind == partialKind && isList {
		kind += "List"
	}
	return jsonType + ";as=" + kind + ";v=v1;g=meta.k8s.io," + jsonType
}

func (r *Resource) withRepresentation(representation representation) *Resource {
	changed := *r
	changed.representation = representation
	return &changed
}

// Metadata returns a handle on the same resource whose verbs return metadata only: Get, List, ListPage, Watch and Follow,
// and what Create, Update, Patch, Apply and Delete return. The objects have the apiVersion and kind of whole ones, so they
// can be owners and [Client.ForObject] finds their resource. Of large objects the server then sends, and the client
// decodes, a fraction. From a server without this representation, whole objects are fetched and reduced. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches.
//
// Objects are written whole. An update with metadata only would empty the stored object: Update returns an error if the
// managedFields list fields that the object lacks. Use Patch to change metadata.
func (r *Resource) Metadata() *Resource {
	return r.withRepresentation(representation{kind: partialKind})
}

// represent reduces an object to the handle's representation, which the server may have done already.
func (r *Resource) represent(obj *unstructured.Object) *unstructured.Object {
	if r.representation.kind != partialKind || isStatus(obj) {
		return obj
	}
	if isPartial(obj) {
		r.setKind(obj)
		return obj
	}
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "metadata": obj.Object["metadata"],
	}}
}

func (r *Resource) representLazy(obj *unstructured.Lazy) *unstructured.Lazy {
	if r.representation.kind != partialKind {
		return obj
	}
	typeMeta := metav1.TypeMeta{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind()}
	if typeMeta.Kind == partialKind && typeMeta.APIVersion == metaVersion && !r.objectKind().Empty() {
		typeMeta.APIVersion, typeMeta.Kind = r.objectKind().ToAPIVersionAndKind()
	}
	return obj.Metadata(typeMeta)
}

// representList returns the type of a list of whole objects for that of a list of metadata.
func (r *Resource) representList(list metav1.TypeMeta) metav1.TypeMeta {
	if r.representation.kind == partialKind && list.Kind == partialKind+"List" && list.APIVersion == metaVersion && !r.mapping.GVK.Empty() {
		list.APIVersion, list.Kind = r.mapping.GVK.ToAPIVersionAndKind()
		list.Kind += "List"
	}
	return list
}

// setKind sets the kind of an object that lacks its own, if that is known.
func (r *Resource) setKind(obj *unstructured.Object) {
	if kind := r.objectKind(); !kind.Empty() {
		obj.SetGroupVersionKind(kind)
	}
}

// objectKind returns the kind of the handle's objects or of its subresource, empty if that is not known.
func (r *Resource) objectKind() schema.GroupVersionKind {
	sub, ok := r.mapping.Subresource(r.subresource)
	switch {
	case ok:
		return sub.GVK
	case r.subresource == "" || r.subresource == "status":
		return r.mapping.GVK
	default: // a mapping without subresources
		return schema.GroupVersionKind{}
	}
}

func isPartial(obj *unstructured.Object) bool {
	return obj.GetKind() == partialKind && obj.GetAPIVersion() == metaVersion
}
