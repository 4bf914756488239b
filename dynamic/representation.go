package dynamic

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/protobuf"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

const (
	metaVersion = "meta.k8s.io/v1" // the apiVersion of the representations
	partialKind = "PartialObjectMetadata"
	tableKind   = "Table"
)

var partialType = metav1.TypeMeta{APIVersion: metaVersion, Kind: partialKind}

// representation is how the server is to return objects; the zero value is as they are.
type representation struct {
	kind    string // partialKind or tableKind
	include metav1.IncludeObjectPolicy
}

// accept returns the Accept header for the representation, and for whole objects from servers without it.
func (r representation) accept(isList, isProtobuf bool) string {
	parameters := ""
	switch {
	case r.kind == partialKind && isList:
		parameters = ";as=" + partialKind + "List;v=v1;g=meta.k8s.io"
	case r.kind != "":
		parameters = ";as=" + r.kind + ";v=v1;g=meta.k8s.io"
	}
	accepted := jsonType + parameters
	if isProtobuf {
		accepted = protobuf.MediaType + parameters + "," + accepted
	}
	if parameters != "" {
		accepted += "," + jsonType
	}
	return accepted
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
	isProtobuf := false
	if request.Method == http.MethodGet {
		_, isProtobuf = e.protobufKind()
	}
	if e.representation.kind == "" && !isProtobuf {
		return e.conn.Do(ctx, request)
	}
	if request.Header == nil {
		request.Header = http.Header{}
	}
	request.Header.Set("Accept", e.representation.accept(isList, isProtobuf))
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

// contentTypes selects the kinds to request as protobuf, for all handles of a client: all kinds in the recorded table, but for
// those with a field that the table lacks in a response of this server. Its nil value selects none.
type contentTypes struct {
	jsonOnly sync.Map // schema.GroupVersionKind: struct{}
}

// JSONKinds returns the kinds that were requested as protobuf, and are requested as JSON from then on, sorted: a response had a field that
// the recorded table lacks, as those of newer servers may. It is empty without transport.Options.Protobuf.
func (c *Client) JSONKinds() []schema.GroupVersionKind {
	if c.contentTypes == nil {
		return nil
	}
	var kinds []schema.GroupVersionKind
	for kind := range c.contentTypes.jsonOnly.Range {
		kinds = append(kinds, kind.(schema.GroupVersionKind))
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

// protobufKind returns the kind of the endpoint's responses, and whether to request them as protobuf.
func (e *endpoint) protobufKind() (kind schema.GroupVersionKind, ok bool) {
	if e.contentTypes == nil || e.representation.kind == tableKind {
		return kind, false
	}
	kind = e.responseKind()
	if _, isJSONOnly := e.contentTypes.jsonOnly.Load(kind); isJSONOnly {
		return kind, false
	}
	if e.hasGenerated {
		return kind, true
	}
	_, ok = protobuf.Lookup(kind)
	return kind, ok
}

// responseKind returns the kind of the objects in responses.
func (e *endpoint) responseKind() schema.GroupVersionKind {
	if e.representation.kind == partialKind {
		return partialType.GroupVersionKind()
	}
	return e.objectKind()
}

// withJSON returns a copy of e that requests no protobuf.
func (e *endpoint) withJSON() *endpoint {
	changed := *e
	changed.contentTypes = nil
	return &changed
}

// fallBackToJSON reports whether err is about a field that is not in the table of protobuf messages, as newer servers send. The
// kind is requested as JSON from then on.
func (e *endpoint) fallBackToJSON(err error) bool {
	_, isUnknown := errors.AsType[*protobuf.UnknownFieldError](err)
	if !isUnknown && !errors.Is(err, errNoMessage) || e.contentTypes == nil {
		return false
	}
	kind, _ := e.protobufKind()
	e.contentTypes.jsonOnly.Store(kind, struct{}{})
	return true
}

// formOf returns the form for the Content-Type of a response.
func formOf(form form, header http.Header) form {
	if isProtobuf(header) {
		return form.protobuf()
	}
	return form
}

func isProtobuf(header http.Header) bool {
	return strings.HasPrefix(header.Get("Content-Type"), protobuf.MediaType)
}
