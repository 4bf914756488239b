package controllerruntime

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// subresourceClient is a client.SubResourceClient.
type subresourceClient struct {
	api  *apiClient
	name string
}

// Get implements client.SubResourceReader.
func (s *subresourceClient) Get(ctx context.Context, obj, subresource client.Object, opts ...client.SubResourceGetOption) error {
	if formOf(obj) == metadataForm {
		return errors.New("get a subresource: the object has metadata only")
	}
	if subresource.GetName() == "" {
		subresource.SetName(obj.GetName())
	}
	options := (&client.SubResourceGetOptions{}).ApplyOptions(opts)
	return s.api.get(ctx, obj, targetOf(obj, s.name), subresource, options.AsGetOptions())
}

// Create implements client.SubResourceWriter.
func (s *subresourceClient) Create(ctx context.Context, obj, subresource client.Object, opts ...client.SubResourceCreateOption) error {
	if formOf(obj) == metadataForm {
		return fmt.Errorf("create the %s of %s: the object has metadata only", s.name, obj.GetName())
	}
	defer restoreKind(obj)()
	defer restoreKind(subresource)()
	if subresource.GetName() == "" {
		subresource.SetName(obj.GetName())
	}
	options := (&client.SubResourceCreateOptions{}).ApplyOptions(opts)
	return s.api.create(ctx, obj, targetOf(obj, s.name), subresource, options.AsCreateOptions())
}

// Update implements client.SubResourceWriter.
func (s *subresourceClient) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if formOf(obj) == metadataForm {
		return fmt.Errorf("update the %s of %s: the object has metadata only (patch it)", s.name, obj.GetName())
	}
	defer restoreKind(obj)()
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	if body.GetName() == "" {
		body.SetName(obj.GetName())
	}
	if body.GetNamespace() == "" {
		body.SetNamespace(obj.GetNamespace())
	}
	return s.api.update(ctx, obj, targetOf(obj, s.name), body, options.AsUpdateOptions())
}

// Patch implements client.SubResourceWriter.
func (s *subresourceClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	defer restoreKind(obj)()
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	data, err := patch.Data(body)
	if err != nil {
		return err
	}
	if formOf(obj) == metadataForm {
		body = obj // the response is metadata only
	}
	return s.api.patch(ctx, obj, targetOf(obj, s.name), patch.Type(), data, body, options.AsPatchOptions())
}

// Apply implements client.SubResourceWriter.
func (s *subresourceClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	return s.api.apply(ctx, obj, body, s.name, options.AsPatchOptions())
}
