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

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/apimachinery/pkg/fields"
)

const jsonType = "application/json"

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

// newRequest returns the request of a validated call on one object or, without a name, on the collection. opts become
// its query, with the handle's defaults.
func newRequest[Options any](r *Resource, verb, name string, opts *Options) *transport.Request {
	request := &transport.Request{Method: method(verb), Path: r.path(name)}
	if opts != nil {
		request.Query, _ = queryparams.Convert(opts) // its error is for what is not a struct
		request.Query.Del("kind")
		request.Query.Del("apiVersion")
	}
	_, isApply := any(opts).(*metav1.ApplyOptions)
	request.Query = r.defaults.addTo(request.Query, request.Method, isApply)
	return request
}

func objectRequest[Options any](r *Resource, verb, name string, opts *Options) (*transport.Request, error) {
	if err := r.validateObject(verb, name); err != nil {
		return nil, err
	}
	return newRequest(r, verb, name, opts), nil
}

func (r *Resource) collectionRequest(verb string, opts *metav1.ListOptions) (*transport.Request, error) {
	if err := r.validateCollection(verb, opts); err != nil {
		return nil, err
	}
	return newRequest(r, verb, "", r.selectName(opts)), nil
}

// selectName adds the handle's name, if it has one, to the field selector of opts.
func (r *Resource) selectName(opts *metav1.ListOptions) *metav1.ListOptions {
	if r.name == "" {
		return opts
	}
	selected := valueOf(opts)
	selector := fields.OneTermEqualSelector("metadata.name", r.name).String()
	if selected.FieldSelector != "" {
		selector = selected.FieldSelector + "," + selector
	}
	selected.FieldSelector = selector
	return &selected
}

// path returns the path of one object or, without a name, of the collection. Its segments have been validated.
func (r *Resource) path(name string) string {
	gvr := r.mapping.GVR
	segments := make([]string, 0, 10)
	if gvr.Group == "" {
		segments = append(segments, "", "api", gvr.Version)
	} else {
		segments = append(segments, "", "apis", gvr.Group, gvr.Version)
	}
	if r.isNamespaced() && r.scope != allNamespaces {
		segments = append(segments, "namespaces", r.namespace)
	}
	segments = append(segments, gvr.Resource)
	if name != "" {
		segments = append(segments, name)
		if r.subresource != "" {
			segments = append(segments, strings.Split(r.subresource, "/")...)
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
func (r *Resource) withKind(obj *unstructured.Object) *unstructured.Object {
	kind := r.objectKind()
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
func (r *Resource) do(ctx context.Context, request *transport.Request, isList bool) (*http.Response, error) {
	response, err := r.doAs(ctx, request, isList)
	if retry.IsPathNotFound(err) {
		if r.discovery != nil {
			r.discovery.Invalidate()
		}
		return nil, r.pathNotFoundError(request, err)
	}
	return response, err
}

func (r *Resource) doAs(ctx context.Context, request *transport.Request, isList bool) (*http.Response, error) {
	if r.representation.kind == "" {
		return r.conn.Do(ctx, request)
	}
	if request.Header == nil {
		request.Header = http.Header{}
	}
	request.Header.Set("Accept", r.representation.accept(isList))
	if r.representation.include != "" {
		if request.Query == nil {
			request.Query = url.Values{}
		}
		request.Query.Set("includeObject", string(r.representation.include))
	}
	response, err := r.conn.Do(ctx, request)
	// Some servers notice only with the object at hand that they cannot reduce it. A write has happened by then.
	if apierrors.IsNotAcceptable(err) && r.representation.kind == partialKind && request.Method == http.MethodGet {
		request.Header.Set("Accept", jsonType)
		return r.conn.Do(ctx, request)
	}
	return response, err
}

// limits returns the connection's limits of memory.
func (r *Resource) limits() unstructured.Limits { return unstructured.Limits(r.conn.MemoryLimits()) }

// doAndDecode sends a request, reads the whole response and decodes it. decode must not retain body.
func doAndDecode[T any](
	ctx context.Context, r *Resource, request *transport.Request, limits unstructured.Limits,
	decode func(limits unstructured.Limits, body []byte) (*T, error),
) (*T, error) {
	ends := r.beginWrite(ctx, request)
	response, err := r.do(ctx, request, false)
	if err != nil {
		return nil, detailedError(request, err)
	}
	defer response.Body.Close()
	buffer, _ := buffers.Get().(*bytes.Buffer)
	defer recycle(buffer)
	var decoded *T
	if err = limits.ReadInto(buffer, response.Body); err != nil {
		err = fmt.Errorf("read the response: %w", err)
	} else {
		r.reportWrite(ends, request, buffer.Bytes())
		decoded, err = decode(limits, buffer.Bytes())
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s%s: %w", request.Method, r.conn.Server(), request.Path, err)
	}
	return decoded, nil
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
