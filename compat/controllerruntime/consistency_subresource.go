package controllerruntime

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Status implements client.StatusClient.
func (c *consistentClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (c *consistentClient) SubResource(name string) client.SubResourceClient {
	return &consistentSubresourceClient{SubResourceClient: c.cachingClient.SubResource(name), writes: c}
}

// consistentSubresourceClient records updates, patches and applies. A create is not recorded: its object is not cached.
type consistentSubresourceClient struct {
	client.SubResourceClient
	writes *consistentClient
}

// Update implements client.SubResourceWriter.
func (s *consistentSubresourceClient) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	return s.writes.recordObject(ctx, obj, options.DisableReadYourWritesConsistency || len(options.DryRun) > 0, func() error {
		return s.SubResourceClient.Update(ctx, obj, opts...)
	})
}

// Patch implements client.SubResourceWriter.
func (s *consistentSubresourceClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	return s.writes.recordObject(ctx, obj, options.DisableReadYourWritesConsistency || len(options.DryRun) > 0, func() error {
		return s.SubResourceClient.Patch(ctx, obj, patch, opts...)
	})
}

// Apply implements client.SubResourceWriter.
func (s *consistentSubresourceClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	return s.writes.recordApply(ctx, obj, options.DisableReadYourWritesConsistency || len(options.DryRun) > 0, func() error {
		return s.SubResourceClient.Apply(ctx, obj, opts...)
	})
}
