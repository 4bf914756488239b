package dynamic

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
)

type resourceMapper interface {
	Resource(ctx context.Context, name string) (*discovery.Resource, error)
	Kind(ctx context.Context, gvk schema.GroupVersionKind) (*discovery.Resource, error)
}

// WithRESTMapper returns a client with a different mapper for lookups of names, kinds, objects and paths, for example the
// mapper of controller-runtime. It shares connections and discovery with c. Errors of the mapper are wrapped. A meta.RESTMapper
// has no verbs and subresources, so unsupported ones are rejected by the server only. Names are parsed as in kubectl, and short
// names are resolved if the mapper supports them. Without the methods of meta.RESTMapperWithContext the mapper does not observe
// ctx.
func (c *Client) WithRESTMapper(mapper meta.RESTMapper) *Client {
	changed := *c
	withContext, ok := mapper.(restMapperWithContext)
	if !ok {
		withContext = restMapperWithoutContext{mapper}
	}
	changed.lookup = &metaMapper{withContext}
	return &changed
}

// restMapperWithContext is the subset of meta.RESTMapperWithContext (apimachinery 0.37) needed by metaMapper.
type restMapperWithContext interface {
	KindForWithContext(context.Context, schema.GroupVersionResource) (schema.GroupVersionKind, error)
	ResourceForWithContext(context.Context, schema.GroupVersionResource) (schema.GroupVersionResource, error)
	RESTMappingWithContext(context.Context, schema.GroupKind, ...string) (*meta.RESTMapping, error)
}

// restMapperWithoutContext adapts a meta.RESTMapper. It ignores the contexts of calls.
type restMapperWithoutContext struct{ meta.RESTMapper }

func (m restMapperWithoutContext) KindForWithContext(_ context.Context, resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.KindFor(resource)
}

func (m restMapperWithoutContext) ResourceForWithContext(_ context.Context, partial schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.ResourceFor(partial)
}

func (m restMapperWithoutContext) RESTMappingWithContext(_ context.Context, gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.RESTMapping(gk, versions...)
}

type metaMapper struct{ mapper restMapperWithContext }

// Resource resolves a name in kubectl's order: as resource with version and group, resource with group, kind.
func (m *metaMapper) Resource(ctx context.Context, name string) (*discovery.Resource, error) {
	var candidates []func() (*discovery.Resource, error)
	versioned, resource := schema.ParseResourceArg(name)
	if versioned != nil {
		candidates = append(candidates, func() (*discovery.Resource, error) { return m.resource(ctx, *versioned) })
	}
	candidates = append(candidates, func() (*discovery.Resource, error) { return m.resource(ctx, resource.WithVersion("")) })
	versionedKind, kind := schema.ParseKindArg(name)
	if versionedKind != nil {
		candidates = append(candidates, func() (*discovery.Resource, error) { return m.kind(ctx, *versionedKind) })
	}
	candidates = append(candidates, func() (*discovery.Resource, error) { return m.kind(ctx, kind.WithVersion("")) })
	var first error
	for _, candidate := range candidates {
		found, err := candidate()
		if err == nil {
			return found, nil
		}
		if !meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("find the resource %q: %w", name, err)
		}
		first = cmp.Or(first, err)
	}
	return nil, fmt.Errorf("find the resource %q: %w", name, first)
}

func (m *metaMapper) Kind(ctx context.Context, gvk schema.GroupVersionKind) (*discovery.Resource, error) {
	found, err := m.kind(ctx, gvk)
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	return found, nil
}

func (m *metaMapper) resource(ctx context.Context, partial schema.GroupVersionResource) (*discovery.Resource, error) {
	gvr, err := m.mapper.ResourceForWithContext(ctx, partial)
	if err != nil {
		return nil, err
	}
	gvk, err := m.mapper.KindForWithContext(ctx, gvr)
	if err != nil {
		return nil, err
	}
	found, err := m.kind(ctx, gvk)
	if err != nil {
		return nil, err
	}
	found.GVR = gvr // the kind may have several resources
	return found, nil
}

func (m *metaMapper) kind(ctx context.Context, gvk schema.GroupVersionKind) (*discovery.Resource, error) {
	var versions []string
	if gvk.Version != "" {
		versions = []string{gvk.Version}
	}
	mapping, err := m.mapper.RESTMappingWithContext(ctx, gvk.GroupKind(), versions...)
	switch {
	case err != nil:
		return nil, err
	case mapping == nil || mapping.Scope == nil:
		return nil, fmt.Errorf("the RESTMapper has no scope for %s", gvk)
	}
	return &discovery.Resource{
		GVR: mapping.Resource, GVK: mapping.GroupVersionKind, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
	}, nil
}
