package clientgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/transport"
	anykind "github.com/anykind/anykind/unstructured"
)

// NewDynamic returns client-go's dynamic client over a connection. Requests and errors equal client-go's: a rejected request is a
// *apierrors.StatusError. Requests are retried like [transport.Conn.Do] retries them. Lists and watches are decoded as they
// arrive. A response that exceeds the connection's MemoryLimits is an *unstructured.LimitError of anykind. The client is safe for
// concurrent use.
func NewDynamic(conn *transport.Conn) dynamic.Interface { return &dynamicClient{conn} }

type dynamicClient struct{ conn *transport.Conn }

// Resource implements dynamic.Interface.
func (c *dynamicClient) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return &resourceClient{conn: c.conn, resource: gvr}
}

// resourceClient implements dynamic.NamespaceableResourceInterface.
type resourceClient struct {
	conn      *transport.Conn
	resource  schema.GroupVersionResource
	namespace string
}

var errNoName = errors.New("name is required")

// maxDiscarded limits the bytes read of an unused response. After the whole response its connection can be reused.
const maxDiscarded = 1 << 20

// limits returns the connection's memory limits.
func (r *resourceClient) limits() anykind.Limits { return anykind.Limits(r.conn.MemoryLimits()) }

// Namespace implements dynamic.NamespaceableResourceInterface.
func (r *resourceClient) Namespace(namespace string) dynamic.ResourceInterface {
	own := *r
	own.namespace = namespace
	return &own
}

// Create implements dynamic.ResourceInterface.
func (r *resourceClient) Create(
	ctx context.Context, obj *unstructuredv1.Unstructured, opts metav1.CreateOptions, subresources ...string,
) (*unstructuredv1.Unstructured, error) {
	name := ""
	if len(subresources) > 0 {
		if name = obj.GetName(); name == "" {
			return nil, errNoName
		}
	}
	return r.write(ctx, http.MethodPost, name, subresources, obj, &opts)
}

// Update implements dynamic.ResourceInterface.
func (r *resourceClient) Update(
	ctx context.Context, obj *unstructuredv1.Unstructured, opts metav1.UpdateOptions, subresources ...string,
) (*unstructuredv1.Unstructured, error) {
	if obj.GetName() == "" {
		return nil, errNoName
	}
	return r.write(ctx, http.MethodPut, obj.GetName(), subresources, obj, &opts)
}

// UpdateStatus implements dynamic.ResourceInterface.
func (r *resourceClient) UpdateStatus(
	ctx context.Context, obj *unstructuredv1.Unstructured, opts metav1.UpdateOptions,
) (*unstructuredv1.Unstructured, error) {
	return r.Update(ctx, obj, opts, "status")
}

// write sends an object.
func (r *resourceClient) write(
	ctx context.Context, method, name string, subresources []string, obj *unstructuredv1.Unstructured, opts any,
) (*unstructuredv1.Unstructured, error) {
	body := []byte("null") // as client-go sends an object without content
	if obj == nil || obj.Object != nil {
		var err error
		if body, err = anykind.Encode(obj); err != nil {
			return nil, err
		}
	}
	return r.object(ctx, method, name, subresources, opts, "application/json", append(body, '\n'))
}

// Delete implements dynamic.ResourceInterface.
func (r *resourceClient) Delete(ctx context.Context, name string, opts metav1.DeleteOptions, subresources ...string) error {
	if name == "" {
		return errNoName
	}
	return r.delete(ctx, name, subresources, &opts, nil)
}

// DeleteCollection implements dynamic.ResourceInterface.
func (r *resourceClient) DeleteCollection(ctx context.Context, opts metav1.DeleteOptions, listOptions metav1.ListOptions) error {
	return r.delete(ctx, "", nil, &opts, &listOptions)
}

func (r *resourceClient) delete(ctx context.Context, name string, subresources []string, opts *metav1.DeleteOptions, list any) error {
	opts.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"})
	body, err := json.Marshal(opts)
	if err != nil {
		return err
	}
	response, err := r.do(ctx, http.MethodDelete, name, subresources, list, "application/json", append(body, '\n'))
	if err != nil {
		return err
	}
	_, err = io.CopyN(io.Discard, response.Body, maxDiscarded) // lets the connection be reused
	if err == io.EOF {                                         //nolint:errorlint // a wrapped EOF is a broken connection, not the end
		err = nil
	}
	return errors.Join(err, response.Body.Close())
}

// Get implements dynamic.ResourceInterface.
func (r *resourceClient) Get(
	ctx context.Context, name string, opts metav1.GetOptions, subresources ...string,
) (*unstructuredv1.Unstructured, error) {
	if name == "" {
		return nil, errNoName
	}
	return r.object(ctx, http.MethodGet, name, subresources, &opts, "", nil)
}

// List implements dynamic.ResourceInterface.
func (r *resourceClient) List(ctx context.Context, opts metav1.ListOptions) (*unstructuredv1.UnstructuredList, error) {
	response, err := r.do(ctx, http.MethodGet, "", nil, &opts, "", nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return decodeList(response.Body, r.limits())
}

// Patch implements dynamic.ResourceInterface.
func (r *resourceClient) Patch(
	ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string,
) (*unstructuredv1.Unstructured, error) {
	if name == "" {
		return nil, errNoName
	}
	return r.object(ctx, http.MethodPatch, name, subresources, &opts, string(pt), data)
}

// Apply implements dynamic.ResourceInterface.
func (r *resourceClient) Apply(
	ctx context.Context, name string, obj *unstructuredv1.Unstructured, opts metav1.ApplyOptions, subresources ...string,
) (*unstructuredv1.Unstructured, error) {
	if name == "" {
		return nil, errNoName
	}
	if len(obj.GetManagedFields()) > 0 {
		return nil, fmt.Errorf("apply %s %q: the object has managedFields (apply only the fields that are to be owned)",
			r.resource.GroupResource(), name)
	}
	body, err := anykind.Encode(obj)
	if err != nil {
		return nil, err
	}
	patchOptions := opts.ToPatchOptions()
	return r.object(ctx, http.MethodPatch, name, subresources, &patchOptions, string(types.ApplyYAMLPatchType), body)
}

// ApplyStatus implements dynamic.ResourceInterface.
func (r *resourceClient) ApplyStatus(
	ctx context.Context, name string, obj *unstructuredv1.Unstructured, opts metav1.ApplyOptions,
) (*unstructuredv1.Unstructured, error) {
	return r.Apply(ctx, name, obj, opts, "status")
}

// object sends a request and decodes the object in the response.
func (r *resourceClient) object(
	ctx context.Context, method, name string, subresources []string, opts any, contentType string, body []byte,
) (*unstructuredv1.Unstructured, error) {
	response, err := r.do(ctx, method, name, subresources, opts, contentType, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return decodeObject(response.Body, r.limits())
}

// do sends a request with opts as its query.
func (r *resourceClient) do(
	ctx context.Context, method, name string, subresources []string, opts any, contentType string, body []byte,
) (*http.Response, error) {
	path, err := r.path(name, subresources)
	if err != nil {
		return nil, err
	}
	request := &transport.Request{Method: method, Path: path, Body: body, Header: http.Header{"Accept": {"application/json"}}}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if opts != nil {
		if request.Query, err = queryparams.Convert(opts); err != nil {
			return nil, err
		}
		request.Query.Del("kind")
		request.Query.Del("apiVersion")
	}
	return r.conn.Do(ctx, request)
}

// path returns the escaped path of an object or, without a name, of the collection. As in client-go, resources and subresources
// may contain slashes, for example a path behind a proxy.
func (r *resourceClient) path(name string, subresources []string) (string, error) {
	for _, part := range []struct{ what, segment string }{{"namespace", r.namespace}, {"resource name", name}} {
		if messages := rest.IsValidPathSegmentName(part.segment); len(messages) > 0 {
			return "", fmt.Errorf("invalid %s %q: %v", part.what, part.segment, messages)
		}
	}
	segments := []string{"/api", r.resource.Version}
	if r.resource.Group != "" {
		segments = []string{"/apis", r.resource.Group, r.resource.Version}
	}
	if r.namespace != "" {
		segments = append(segments, "namespaces", r.namespace)
	}
	segments = append(segments, r.resource.Resource, name)
	joined := url.URL{Path: path.Join(append(segments, subresources...)...)}
	return joined.EscapedPath(), nil
}
