package dynamic

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

const jsonType = "application/json"

// endpoint is the part of a handle without its type of objects: the resource, the address and the options of calls. It validates
// calls (validate.go), and builds and sends requests. Handle embeds it: methods with the same result for every T are defined here,
// because Go compiles generic code once for each kind of T.
type endpoint struct {
	conn           *transport.Conn
	discovery      *discovery.Client // the client's; may be nil
	apiResource    *discovery.Resource
	namespace      string
	scope          namespaceScope
	isScopeUnknown bool   // apiResource has no scope
	name           string // object name; "" for all objects
	subresource    string
	pageOptions    PageOptions
	waitOptions    WaitOptions
	shard          string // the parameter shardSelector; "" for none
	representation representation
	contentTypes   *contentTypes // the client's; nil for JSON only
	shardProbe     *shardProbe   // the client's
	hasGenerated   bool          // a Decoder has generated code: protobuf needs no recorded table
	defaults       Defaults
	onWrite        []func(ctx context.Context, namespace, name string) (end func(Write))
}

type namespaceScope int

const (
	defaultNamespace namespaceScope = iota // the config's; an object's own namespace takes precedence
	chosenNamespace                        // the caller's; an object must have the same or none
	allNamespaces
)

// inNamespace returns a copy of e in a chosen namespace.
func (e *endpoint) inNamespace(namespace string) *endpoint {
	changed := *e
	changed.namespace = namespace
	changed.scope = chosenNamespace
	return &changed
}

// withSubresource returns a copy of e for a subresource.
func (e *endpoint) withSubresource(name string) *endpoint {
	changed := *e
	changed.subresource = name
	return &changed
}

// withShard returns a copy of e that requests the objects of a shard.
func (e *endpoint) withShard(selector shard.Selector) *endpoint {
	changed := *e
	changed.shard = selector.String()
	return &changed
}

// objects returns a handle on objects of any kind. Methods of Handle do not call As, which would add the code for structs to every
// program.
func (e *endpoint) objects() *Resource {
	objects := &Resource{*e, objectCodec{}}
	objects.hasGenerated = false
	return objects
}

// isNamespaced reports whether object paths contain a namespace.
func (e *endpoint) isNamespaced() bool {
	if e.isScopeUnknown {
		return e.scope == chosenNamespace
	}
	return e.apiResource.Namespaced
}

// APIResource returns the group, version, kind, scope, verbs and subresources of the resource. It is shared and read-only.
func (e *endpoint) APIResource() *discovery.Resource { return e.apiResource }

// Conn returns the connection of the handle. It is for requests without a verb in this package, at a path from [Handle.Path].
func (e *endpoint) Conn() *transport.Conn { return e.conn }

// Path returns the path of the named object, or of the handle's collection if name is "". The path is escaped for
// transport.Request: /apis/apps/v1/namespaces/shop/deployments/web. [Client.ForPath] is the inverse.
func (e *endpoint) Path(name string) (string, error) {
	var err error
	switch {
	case name != "":
		err = e.validateObjectPath("find", name)
	case e.subresource != "":
		err = e.invalid("find", "", "a subresource belongs to one object (give the object's name)")
	default:
		err = e.validateCollectionPath("find", "")
	}
	if err != nil {
		return "", err
	}
	return e.path(name), nil
}

// String returns the resource as in errors: deployments.apps, pods/status.
func (e *endpoint) String() string {
	name := e.apiResource.GVR.GroupResource().String()
	if e.subresource != "" {
		return name + "/" + e.subresource
	}
	return name
}

// objectKind returns the kind of the handle's objects or of its subresource, empty if that is not known.
func (e *endpoint) objectKind() schema.GroupVersionKind {
	sub, ok := e.apiResource.Subresource(e.subresource)
	switch {
	case ok:
		return sub.GVK
	case e.subresource == "" || e.subresource == "status":
		return e.apiResource.GVK
	default: // a resource without subresources
		return schema.GroupVersionKind{}
	}
}

// valueOf returns what p points to, and the zero value for nil, as with options: nil means defaults.
func valueOf[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

func method(verb string) string {
	switch verb {
	case "create":
		return http.MethodPost
	case "update":
		return http.MethodPut
	case "patch":
		return http.MethodPatch
	case "delete", "deletecollection":
		return http.MethodDelete
	default:
		return http.MethodGet
	}
}

// newRequest returns the request of a validated call on one object or, without a name, on the collection. The handle's
// defaults are added to query.
func (e *endpoint) newRequest(verb, name string, query url.Values) *transport.Request {
	request := &transport.Request{Method: method(verb), Path: e.path(name)}
	request.Query = e.defaults.addTo(query, request.Method)
	return request
}

// queryOf returns the query of options. Each type of apimachinery's options has its own parameters.
func queryOf[Options any](opts *Options) url.Values {
	if opts == nil {
		return nil
	}
	query, _ := queryparams.Convert(opts) // its error is for what is not a struct
	query.Del("kind")
	query.Del("apiVersion")
	return query
}

func (e *endpoint) objectRequest(verb, name string, query url.Values) (*transport.Request, error) {
	if err := e.validateObject(verb, name); err != nil {
		return nil, err
	}
	return e.newRequest(verb, name, query), nil
}

func (e *endpoint) collectionRequest(verb string, opts *metav1.ListOptions) (*transport.Request, error) {
	if err := e.validateCollection(verb, opts); err != nil {
		return nil, err
	}
	query := queryOf(e.selectName(opts))
	if e.shard != "" {
		query.Set("shardSelector", e.shard) // ListOptions has no such field in older versions of apimachinery
	}
	return e.newRequest(verb, "", query), nil
}

// selectName adds the handle's name, if it has one, to the field selector of opts.
func (e *endpoint) selectName(opts *metav1.ListOptions) *metav1.ListOptions {
	if e.name == "" {
		return opts
	}
	selected := valueOf(opts)
	selector := fields.OneTermEqualSelector("metadata.name", e.name).String()
	if selected.FieldSelector != "" {
		selector = selected.FieldSelector + "," + selector
	}
	selected.FieldSelector = selector
	return &selected
}

// path returns the path of one object or, without a name, of the collection. Its segments have been validated.
func (e *endpoint) path(name string) string {
	gvr := e.apiResource.GVR
	segments := make([]string, 0, 10)
	if gvr.Group == "" {
		segments = append(segments, "", "api", gvr.Version)
	} else {
		segments = append(segments, "", "apis", gvr.Group, gvr.Version)
	}
	if e.isNamespaced() && e.scope != allNamespaces {
		segments = append(segments, "namespaces", e.namespace)
	}
	segments = append(segments, gvr.Resource)
	if name != "" {
		segments = append(segments, name)
		if e.subresource != "" {
			segments = append(segments, strings.Split(e.subresource, "/")...)
		}
	}
	for i, segment := range segments {
		segments[i] = url.PathEscape(segment)
	}
	return strings.Join(segments, "/")
}

func setBody(request *transport.Request, contentType string, body []byte) {
	request.Body = body
	request.Header = http.Header{"Content-Type": {contentType}}
}

// withKind returns obj with the kind of the resource or subresource if it has none. obj itself is not changed.
func (e *endpoint) withKind(obj *unstructured.Object) *unstructured.Object {
	kind := e.objectKind()
	if !obj.GroupVersionKind().Empty() || kind.Empty() {
		return obj
	}
	filled := &unstructured.Object{Object: make(map[string]any, len(obj.Object)+2)}
	maps.Copy(filled.Object, obj.Object)
	filled.SetGroupVersionKind(kind)
	return filled
}

// do sends a request whose response holds objects, and requests the handle's representation of them. isList is for metadata:
// a list of it has a kind of its own, whereas a table is the same for one object. If the path is not served, discovery is stale.
func (e *endpoint) do(ctx context.Context, request *transport.Request, isList bool) (*http.Response, error) {
	response, err := e.doAs(ctx, request, isList)
	if retry.IsPathNotFound(err) {
		if e.discovery != nil {
			e.discovery.Invalidate()
		}
		return nil, e.pathNotFoundError(request, err)
	}
	return response, err
}

// limits returns the connection's limits of memory.
func (e *endpoint) limits() unstructured.Limits { return unstructured.Limits(e.conn.MemoryLimits()) }

// doAndDecode sends a request, reads the whole response and calls decode, which must not retain body.
func (e *endpoint) doAndDecode(
	ctx context.Context, request *transport.Request, decode func(header http.Header, body []byte) error,
) error {
	ends := e.beginWrite(ctx, request)
	response, err := e.do(ctx, request, false)
	if err != nil {
		return detailedError(request, err)
	}
	defer response.Body.Close()
	buffer, _ := buffers.Get().(*bytes.Buffer)
	defer recycle(buffer)
	if err = e.limits().ReadInto(buffer, response.Body); err != nil {
		err = fmt.Errorf("read the response: %w", err)
	} else {
		e.reportWrite(ends, request, buffer.Bytes())
		err = decode(response.Header, buffer.Bytes())
	}
	if err != nil {
		return fmt.Errorf("%s %s%s: %w", request.Method, e.conn.Server(), request.Path, err)
	}
	return nil
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const maxPooledBuffer = 64 << 10

// recycle returns a buffer to the pool unless it is large. It is cleared: a response may hold secrets.
func recycle(buffer *bytes.Buffer) {
	if buffer.Cap() > maxPooledBuffer {
		return
	}
	clear(buffer.Bytes())
	buffer.Reset()
	buffers.Put(buffer)
}
