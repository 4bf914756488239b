package controllerruntime

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/anykind/anykind/transport"
)

// apiClient sends controller-runtime's calls over a connection of anykind. Kinds come from the scheme, paths from the mapper.
type apiClient struct {
	conn     *transport.Conn
	scheme   *runtime.Scheme
	mapper   meta.RESTMapper
	codecs   serializer.CodecFactory
	warnings *warningForwarder
}

func newAPIClient(conn *transport.Conn, scheme *runtime.Scheme, mapper meta.RESTMapper, warnings *warningForwarder) *apiClient {
	return &apiClient{conn: conn.WithOnWarning(nil), scheme: scheme, mapper: mapper, codecs: serializer.NewCodecFactory(scheme), warnings: warnings}
}

// mapping returns the REST mapping of an object or of a list's items.
func (a *apiClient) mapping(ctx context.Context, obj runtime.Object) (*meta.RESTMapping, error) {
	gvk, err := apiutil.GVKForObject(obj, a.scheme)
	if err != nil {
		return nil, err
	}
	if meta.IsListType(obj) {
		gvk = itemKind(gvk)
	}
	return a.mappingForKind(ctx, gvk)
}

// itemKind returns the kind of a list's items.
func itemKind(list schema.GroupVersionKind) schema.GroupVersionKind {
	list.Kind = strings.TrimSuffix(list.Kind, "List")
	return list
}

func (a *apiClient) mappingForKind(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	return meta.ToRESTMapperWithContext(a.mapper).RESTMappingWithContext(ctx, gvk.GroupKind(), gvk.Version)
}

func (a *apiClient) get(ctx context.Context, obj client.Object, t target, into client.Object, options *metav1.GetOptions) error {
	mapping, err := a.mapping(ctx, obj)
	if err != nil {
		return err
	}
	return a.exchange(ctx, &request{method: http.MethodGet, mapping: mapping, target: t, options: options, accept: a.acceptOf(into)}, into)
}

func (a *apiClient) create(ctx context.Context, obj client.Object, t target, body client.Object, options *metav1.CreateOptions) error {
	return a.write(ctx, &request{method: http.MethodPost, target: t, options: options}, obj, body)
}

func (a *apiClient) update(ctx context.Context, obj client.Object, t target, body client.Object, options *metav1.UpdateOptions) error {
	return a.write(ctx, &request{method: http.MethodPut, target: t, options: options}, obj, body)
}

// write sends body to the resource of obj and decodes the response into body.
func (a *apiClient) write(ctx context.Context, r *request, obj, body client.Object) (err error) {
	if r.mapping, err = a.mapping(ctx, obj); err != nil {
		return err
	}
	if r.body, err = a.encode(body); err != nil {
		return err
	}
	r.accept = a.acceptOf(body)
	r.contentType = jsonMedia
	return a.exchange(ctx, r, body)
}

func (a *apiClient) patch(
	ctx context.Context, obj client.Object, t target, patchType types.PatchType, data []byte, into client.Object, options *metav1.PatchOptions,
) error {
	mapping, err := a.mapping(ctx, obj)
	if err != nil {
		return err
	}
	return a.exchange(ctx, &request{
		method: http.MethodPatch, mapping: mapping, target: t, options: options,
		accept: a.acceptOf(into), contentType: string(patchType), body: data,
	}, into)
}

// deleteResponse is the response to a deletion: the remaining object, or a Status.
type deleteResponse struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Details           metav1.StatusDetails `json:"details"`
}

func (a *apiClient) delete(
	ctx context.Context, obj client.Object, t target, list *metav1.ListOptions, options *metav1.DeleteOptions,
) (*deleteResponse, error) {
	mapping, err := a.mapping(ctx, obj)
	if err != nil {
		return nil, err
	}
	withKind := *options
	withKind.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	body, err := json.Marshal(&withKind)
	if err != nil {
		return nil, err
	}
	r := &request{method: http.MethodDelete, mapping: mapping, target: t, accept: jsonMedia, contentType: jsonMedia, body: body}
	if list != nil {
		r.options = list
		r.accept = metadataListMedia
	}
	response := &deleteResponse{}
	if t.collection {
		return response, a.discard(ctx, r)
	}
	data, err := a.do(ctx, r)
	if err != nil {
		return response, err
	}
	if err := unmarshal(data, response, a.limits()); err != nil {
		return nil, fmt.Errorf("delete %s: the response cannot be decoded: %w", mapping.Resource.GroupResource(), err)
	}
	return response, nil
}

// applyConfiguration has the methods of all generated ApplyConfigurations.
type applyConfiguration interface {
	GetName() *string
	GetNamespace() *string
	GetKind() *string
	GetAPIVersion() *string
}

// unstructuredApplyConfiguration is implemented by the result of client.ApplyConfigurationFromUnstructured.
type unstructuredApplyConfiguration interface {
	client.Object
	runtime.ApplyConfiguration
	runtime.Unstructured
}

// apply sends body to the object or subresource named by obj, and decodes the response into obj.
func (a *apiClient) apply(ctx context.Context, obj, body runtime.ApplyConfiguration, subresource string, options *metav1.PatchOptions) error {
	gvk, key, err := applyTarget(obj)
	if err != nil {
		return err
	}
	mapping, err := a.mappingForKind(ctx, gvk)
	if err != nil {
		return err
	}
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("apply %s: encode the apply configuration: %w", gvk.Kind, err)
	}
	response, err := a.do(ctx, &request{
		method: http.MethodPatch, mapping: mapping, target: target{namespace: key.Namespace, name: key.Name, subresource: subresource},
		options: options, accept: jsonMedia, contentType: string(types.ApplyPatchType), body: data,
	})
	if err != nil {
		return err
	}
	if u, ok := obj.(unstructuredApplyConfiguration); ok {
		defer restoreKind(u)()
		return a.decode(response, u, a.limits())
	}
	return unmarshal(response, obj, a.limits())
}

// applyTarget returns the kind, namespace and name of an ApplyConfiguration.
func applyTarget(obj runtime.ApplyConfiguration) (schema.GroupVersionKind, client.ObjectKey, error) {
	switch obj := obj.(type) {
	case unstructuredApplyConfiguration:
		gvk := obj.GetObjectKind().GroupVersionKind()
		if gvk.Kind == "" {
			return gvk, client.ObjectKey{}, runtime.NewMissingKindErr("the apply configuration")
		}
		return gvk, client.ObjectKeyFromObject(obj), nil
	case applyConfiguration:
		gvk := schema.FromAPIVersionAndKind(value(obj.GetAPIVersion()), value(obj.GetKind()))
		return gvk, client.ObjectKey{Namespace: value(obj.GetNamespace()), Name: value(obj.GetName())}, nil
	default:
		return schema.GroupVersionKind{}, client.ObjectKey{}, fmt.Errorf("apply: %T has no kind and name", obj)
	}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
