package dynamic

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"

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
	var obj *T
	err := r.answerTo(ctx, request, single, func(answer []byte) (err error) {
		if obj, err = read.one(answer); err != nil {
			return fmt.Errorf("%s %s%s: %w", request.Method, r.conn.Server(), request.Path, err)
		}
		return nil
	})
	return obj, err
}

// answerTo makes a request and hands the whole answer, in the form that the handle wants, to take, which must not keep
// it.
func (r *Resource) answerTo(ctx context.Context, request *transport.Request, many amount, take func(answer []byte) error) error {
	response, err := r.do(ctx, request, many)
	if err != nil {
		return explain(request.Method, request.Path, err)
	}
	defer response.Body.Close()
	answer, _ := answers.Get().(*bytes.Buffer)
	defer release(answer)
	if _, err := answer.ReadFrom(response.Body); err != nil {
		return fmt.Errorf("%s %s%s: read the answer: %w", request.Method, r.conn.Server(), request.Path, err)
	}
	return take(answer.Bytes())
}

// answers are buffers that answers are read into, one after the other.
var answers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const longestKept = 64 << 10

// release keeps a buffer for the next answer, but nothing of this one: it may be secret.
func release(answer *bytes.Buffer) {
	if answer.Cap() > longestKept {
		return
	}
	clear(answer.Bytes())
	answer.Reset()
	answers.Put(answer)
}

// exchange is answerTo for what is no object of the resource, and so has no form.
func (r *Resource) exchange(ctx context.Context, method, path string, query url.Values, contentType string, body []byte) ([]byte, error) {
	plain := *r
	plain.form = form{}
	request := &transport.Request{Method: method, Path: path, Query: query, Body: body}
	if body != nil {
		request.Header = http.Header{"Content-Type": {contentType}}
	}
	var answer []byte
	err := plain.answerTo(ctx, request, single, func(all []byte) error {
		answer = bytes.Clone(all)
		return nil
	})
	return answer, err
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
