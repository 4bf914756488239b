package dynamic

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
)

const jsonType = "application/json"

// sendObjectAs writes obj, and reads with read what the server made of it.
func sendObjectAs[T any](ctx context.Context, r *Resource, request *transport.Request, contentType string, obj *unstructured.Object, read reader[T]) (*T, error) {
	body, err := unstructured.Encode(r.withKind(obj))
	if err != nil {
		return nil, fmt.Errorf("%s %s %q: encode the object: %w", request.Method, r, obj.GetName(), err)
	}
	request.Body = body
	return sendAs(ctx, r, request, contentType, read)
}

// withKind fills in the kind and version of an object that names neither; obj itself stays as it is.
func (r *Resource) withKind(obj *unstructured.Object) *unstructured.Object {
	kind := r.mapping.GVK
	if sub, ok := r.mapping.Subresource(r.sub); ok {
		kind = sub.GVK
	}
	if !obj.GroupVersionKind().Empty() || kind.Empty() {
		return obj
	}
	filled := &unstructured.Object{Object: make(map[string]any, len(obj.Object)+2)}
	for field, value := range obj.Object {
		filled.Object[field] = value
	}
	filled.SetGroupVersionKind(kind)
	return filled
}

// sendAs makes a request that is answered with one object, and reads that with read.
func sendAs[T any](ctx context.Context, r *Resource, request *transport.Request, contentType string, read reader[T]) (*T, error) {
	if request.Body != nil {
		request.Header = http.Header{"Content-Type": {contentType}}
	}
	answer, err := r.answerTo(ctx, request, single)
	if err != nil {
		return nil, err
	}
	obj, err := read.one(answer)
	if err != nil {
		return nil, fmt.Errorf("%s %s%s: %w", request.Method, r.conn.Server(), request.Path, err)
	}
	return obj, nil
}

// answerTo makes a request and reads the whole answer, in the form that the handle wants.
func (r *Resource) answerTo(ctx context.Context, request *transport.Request, many amount) ([]byte, error) {
	response, err := r.do(ctx, request, many)
	if err != nil {
		return nil, explain(request.Method, request.Path, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s%s: read the answer: %w", request.Method, r.conn.Server(), request.Path, err)
	}
	return answer, nil
}

// exchange is answerTo for what is no object of the resource, and so has no form.
func (r *Resource) exchange(ctx context.Context, method, path string, query url.Values, contentType string, body []byte) ([]byte, error) {
	plain := *r
	plain.form = form{}
	request := &transport.Request{Method: method, Path: path, Query: query, Body: body}
	if body != nil {
		request.Header = http.Header{"Content-Type": {contentType}}
	}
	return plain.answerTo(ctx, request, single)
}

// queryOf writes options as a URL's query.
func queryOf[Options any](opts *Options) (url.Values, error) {
	if opts == nil {
		return nil, nil
	}
	query, err := queryparams.Convert(opts)
	if err != nil {
		return nil, fmt.Errorf("write %T as a query: %w", opts, err)
	}
	// The options' own kind is no parameter.
	query.Del("kind")
	query.Del("apiVersion")
	return query, nil
}
