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

// sendObject writes obj and returns what the server made of it.
func (r *Resource) sendObject(ctx context.Context, method, path string, query url.Values, contentType string, obj *unstructured.Object) (*unstructured.Object, error) {
	body, err := unstructured.Encode(r.withKind(obj))
	if err != nil {
		return nil, fmt.Errorf("%s %s %q: encode the object: %w", method, r, obj.GetName(), err)
	}
	return r.send(ctx, method, path, query, contentType, body)
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

// send makes a request that is answered with one object.
func (r *Resource) send(ctx context.Context, method, path string, query url.Values, contentType string, body []byte) (*unstructured.Object, error) {
	answer, err := r.exchange(ctx, method, path, query, contentType, body)
	if err != nil {
		return nil, err
	}
	obj, err := unstructured.Decode(answer)
	if err != nil {
		return nil, fmt.Errorf("%s %s%s: the answer is no Kubernetes object: %w", method, r.conn.Server(), path, err)
	}
	return obj, nil
}

// exchange makes a request and reads the whole answer.
func (r *Resource) exchange(ctx context.Context, method, path string, query url.Values, contentType string, body []byte) ([]byte, error) {
	request := &transport.Request{Method: method, Path: path, Query: query, Body: body}
	if body != nil {
		request.Header = http.Header{"Content-Type": {contentType}}
	}
	response, err := r.conn.Do(ctx, request)
	if err != nil {
		return nil, explain(method, path, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s%s: read the answer: %w", method, r.conn.Server(), path, err)
	}
	return answer, nil
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
