package dynamic

import (
	"context"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

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

// withRepresentation returns a copy of e that requests a representation.
func (e *endpoint) withRepresentation(representation representation) *endpoint {
	changed := *e
	changed.representation = representation
	return &changed
}

// represent reduces an object to the handle's representation, which the server may have done already.
func (e *endpoint) represent(obj *unstructured.Object) *unstructured.Object {
	if e.representation.kind != partialKind || isStatus(obj) {
		return obj
	}
	if isPartial(obj) {
		e.setKind(obj)
		return obj
	}
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "metadata": obj.Object["metadata"],
	}}
}

func (e *endpoint) representLazy(obj *unstructured.Lazy) *unstructured.Lazy {
	if e.representation.kind != partialKind {
		return obj
	}
	typeMeta := metav1.TypeMeta{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind()}
	if typeMeta.Kind == partialKind && typeMeta.APIVersion == metaVersion && !e.objectKind().Empty() {
		typeMeta.APIVersion, typeMeta.Kind = e.objectKind().ToAPIVersionAndKind()
	}
	return obj.Metadata(typeMeta)
}

// representList returns the type of a list of whole objects for that of a list of metadata.
func (e *endpoint) representList(list metav1.TypeMeta) metav1.TypeMeta {
	if e.representation.kind == partialKind && list.Kind == partialKind+"List" && list.APIVersion == metaVersion && !e.apiResource.GVK.Empty() {
		list.APIVersion, list.Kind = e.apiResource.GVK.ToAPIVersionAndKind()
		list.Kind += "List"
	}
	return list
}

// setKind sets the known kind of an object without a kind.
func (e *endpoint) setKind(obj *unstructured.Object) {
	if kind := e.objectKind(); !kind.Empty() {
		obj.SetGroupVersionKind(kind)
	}
}

func isPartial(obj *unstructured.Object) bool {
	return obj.GetKind() == partialKind && obj.GetAPIVersion() == metaVersion
}

func (e *endpoint) doAs(ctx context.Context, request *transport.Request, isList bool) (*http.Response, error) {
	if e.representation.kind == "" {
		return e.conn.Do(ctx, request)
	}
	if request.Header == nil {
		request.Header = http.Header{}
	}
	request.Header.Set("Accept", e.representation.accept(isList))
	if e.representation.include != "" {
		if request.Query == nil {
			request.Query = url.Values{}
		}
		request.Query.Set("includeObject", string(e.representation.include))
	}
	response, err := e.conn.Do(ctx, request)
	// Some servers notice only with the object at hand that they cannot reduce it. A write has happened by then.
	if apierrors.IsNotAcceptable(err) && e.representation.kind == partialKind && request.Method == http.MethodGet {
		request.Header.Set("Accept", jsonType)
		return e.conn.Do(ctx, request)
	}
	return response, err
}
