package controllerruntime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// target is the namespace, name and subresource in a request's path.
type target struct {
	namespace, name, subresource string
	collection                   bool // no name
}

func targetOf(obj client.Object, subresource string) target {
	return target{namespace: obj.GetNamespace(), name: obj.GetName(), subresource: subresource}
}

// request is an API request for a resource.
type request struct {
	method  string
	mapping *meta.RESTMapping
	target
	options     any // of metav1, for the query; nil: no query
	accept      string
	contentType string
	body        []byte
}

const (
	jsonMedia         = "application/json"
	metadataMedia     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	metadataListMedia = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// acceptOf returns the media types for responses in obj's form, an object or a list. Typed objects of generated types and metadata
// may be protobuf, as dynamic's.
func (a *apiClient) acceptOf(obj any) string {
	accept := jsonMedia
	switch obj.(type) {
	case *metav1.PartialObjectMetadata:
		accept = metadataMedia
	case *metav1.PartialObjectMetadataList:
		accept = metadataListMedia
	}
	if !a.conn.UsesProtobuf() || generatedMessage(obj) == nil {
		return accept
	}
	media, _, _ := strings.Cut(accept, ",")
	return runtime.ContentTypeProtobuf + strings.TrimPrefix(media, jsonMedia) + "," + accept
}

// path returns the path of the request. As in controller-runtime, the namespace of a cluster-scoped resource is ignored.
func (r *request) path() (string, error) {
	gvr := r.mapping.Resource
	p := "/api/" + gvr.Version
	if gvr.Group != "" {
		p = "/apis/" + gvr.Group + "/" + gvr.Version
	}
	namespaced := r.mapping.Scope.Name() != meta.RESTScopeNameRoot
	switch {
	case namespaced && r.namespace == "" && r.method == http.MethodPost:
		return "", errors.New("an empty namespace may not be set during creation")
	case namespaced && r.namespace == "" && !r.collection && r.name != "" && r.method != http.MethodPatch: // the server rejects these requests, too
		return "", errors.New("an empty namespace may not be set when a resource name is provided")
	case namespaced && r.namespace != "":
		if messages := content.IsPathSegmentName(r.namespace); len(messages) > 0 {
			return "", fmt.Errorf("invalid namespace %q: %v", r.namespace, messages)
		}
		p += "/namespaces/" + url.PathEscape(r.namespace)
	}
	p += "/" + gvr.Resource
	if r.collection {
		return p, nil
	}
	if r.name == "" {
		return "", errors.New("resource name may not be empty")
	}
	if messages := content.IsPathSegmentName(r.name); len(messages) > 0 {
		return "", fmt.Errorf("invalid resource name %q: %v", r.name, messages)
	}
	p += "/" + url.PathEscape(r.name)
	if r.subresource != "" {
		p += "/" + r.subresource
	}
	return p, nil
}

// send sends a request and returns the response. The caller closes its body.
func (a *apiClient) send(ctx context.Context, r *request) (*http.Response, error) {
	p, err := r.path()
	if err != nil {
		return nil, err
	}
	var query url.Values
	if r.options != nil {
		if query, err = queryparams.Convert(r.options); err != nil {
			return nil, err
		}
	}
	header := http.Header{"Accept": {r.accept}}
	if r.contentType != "" {
		header.Set("Content-Type", r.contentType)
	}
	ctx, forwardWarnings := a.warnings.collect(ctx)
	defer forwardWarnings()
	return a.conn.Do(ctx, &transport.Request{Method: r.method, Path: p, Query: query, Header: header, Body: r.body})
}

// do sends a request and returns the body of the response.
func (a *apiClient) do(ctx context.Context, r *request) ([]byte, error) {
	response, err := a.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var body bytes.Buffer
	if err := a.limits().ReadInto(&body, response.Body); err != nil {
		return nil, fmt.Errorf("%s %s: read the response: %w", r.method, r.mapping.Resource.GroupResource(), err)
	}
	return body.Bytes(), nil
}

// maxDiscarded limits the bytes read of an unused response. After the whole response its connection can be reused.
const maxDiscarded = 1 << 20

// discard sends a request and discards the response.
func (a *apiClient) discard(ctx context.Context, r *request) error {
	response, err := a.send(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.CopyN(io.Discard, response.Body, maxDiscarded); err != nil && err != io.EOF { //nolint:errorlint // a wrapped EOF is a broken connection
		return fmt.Errorf("%s %s: read the response: %w", r.method, r.mapping.Resource.GroupResource(), err)
	}
	return nil
}

// limits returns the connection's memory limits.
func (a *apiClient) limits() unstructured.Limits { return unstructured.Limits(a.conn.MemoryLimits()) }

// exchange sends a request and decodes the response into an object.
func (a *apiClient) exchange(ctx context.Context, r *request, into runtime.Object) error {
	body, err := a.do(ctx, r)
	if err != nil {
		return err
	}
	return a.decode(body, into, a.limits())
}
