package restmapper

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RESTMapper is the mapper in the form that controller-runtime, Helm and kustomize take. ctx is that of the methods
// that take none; the same value is a meta.ResettableRESTMapperWithContext, whose methods take their own.
//
// It answers as client-go's DeferredDiscoveryRESTMapper with short names does. So a name that several groups serve is
// no error here: the first group wins. Its errors for what is missing are apimachinery's own, *meta.NoKindMatchError and
// *meta.NoResourceMatchError, without the suggestions of [Mapper.Resource]; what cannot be read now is an
// [*UnavailableError] and never one of those. Reset asks the server anew at the next call.
func (m *Mapper) RESTMapper(ctx context.Context) meta.ResettableRESTMapper {
	return &restMapper{mapper: m, ctx: ctx}
}

// restMapper speaks apimachinery's language; metalists.go has what it looks up.
type restMapper struct {
	mapper *Mapper
	ctx    context.Context
	// outdated says that the next lookup must ask the server first.
	outdated atomic.Bool
}

var _ meta.ResettableRESTMapperWithContext = (*restMapper)(nil)

// KindFor gives the preferred kind of a resource.
func (r *restMapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return r.KindForWithContext(r.ctx, resource)
}

// KindForWithContext gives the preferred kind of a resource.
func (r *restMapper) KindForWithContext(ctx context.Context, resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	kinds, err := r.KindsForWithContext(ctx, resource)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	if len(kinds) > 1 && kinds[1].GroupVersion() == kinds[0].GroupVersion() {
		return schema.GroupVersionKind{}, &meta.AmbiguousResourceError{PartialResource: resource, MatchingKinds: kinds[:min(maxListed, len(kinds))]}
	}
	return kinds[0], nil
}

// KindsFor lists the kinds of a resource, the preferred one first.
func (r *restMapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return r.KindsForWithContext(r.ctx, resource)
}

// KindsForWithContext lists the kinds of a resource, the preferred one first.
func (r *restMapper) KindsForWithContext(ctx context.Context, resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	found, err := r.resources(ctx, resource)
	if err != nil {
		return nil, err
	}
	var kinds []schema.GroupVersionKind
	for _, mapping := range found {
		if kind := kindOf(mapping); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// ResourceFor completes a resource with its preferred group and version.
func (r *restMapper) ResourceFor(resource schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return r.ResourceForWithContext(r.ctx, resource)
}

// ResourceForWithContext completes a resource with its preferred group and version.
func (r *restMapper) ResourceForWithContext(ctx context.Context, resource schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	found, err := r.ResourcesForWithContext(ctx, resource)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	if len(found) > 1 && found[1].GroupVersion() == found[0].GroupVersion() {
		return schema.GroupVersionResource{}, &meta.AmbiguousResourceError{PartialResource: resource, MatchingResources: found[:min(maxListed, len(found))]}
	}
	return found[0], nil
}

// ResourcesFor lists what a resource's name may mean, the preferred one first.
func (r *restMapper) ResourcesFor(resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return r.ResourcesForWithContext(r.ctx, resource)
}

// ResourcesForWithContext lists what a resource's name may mean, the preferred one first.
func (r *restMapper) ResourcesForWithContext(ctx context.Context, resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	found, err := r.resources(ctx, resource)
	if err != nil {
		return nil, err
	}
	all := make([]schema.GroupVersionResource, 0, len(found))
	for _, mapping := range found {
		all = append(all, mapping.GVR)
	}
	return all, nil
}

// RESTMapping gives the mapping of a kind in the first of versions that has it, or in the preferred one.
func (r *restMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return r.RESTMappingWithContext(r.ctx, gk, versions...)
}

// RESTMappingWithContext gives the mapping of a kind in the first of versions that has it, or in the preferred one.
func (r *restMapper) RESTMappingWithContext(ctx context.Context, gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	found, err := r.RESTMappingsWithContext(ctx, gk, versions...)
	if err != nil {
		return nil, err
	}
	for _, version := range versions {
		for _, mapping := range found {
			if mapping.GroupVersionKind.Version == version {
				return mapping, nil
			}
		}
	}
	return found[0], nil
}

// RESTMappings lists the mappings of a kind in versions, or in all where none is named.
func (r *restMapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return r.RESTMappingsWithContext(r.ctx, gk, versions...)
}

// RESTMappingsWithContext lists the mappings of a kind in versions, or in all where none is named.
func (r *restMapper) RESTMappingsWithContext(ctx context.Context, gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	q := ofKind(gk.WithVersion(""))
	q.versions = slices.DeleteFunc(slices.Clone(versions), func(version string) bool {
		return version == "" || version == runtime.APIVersionInternal
	})
	found, err := lookUp(ctx, r, q, (*catalog).restMappings)
	return found, inTermsOf(err, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions})
}

// ResourceSingularizer gives the singular of a resource's name; with an error, the name itself.
func (r *restMapper) ResourceSingularizer(resource string) (string, error) {
	return r.ResourceSingularizerWithContext(r.ctx, resource)
}

// ResourceSingularizerWithContext gives the singular of a resource's name; with an error, the name itself.
func (r *restMapper) ResourceSingularizerWithContext(ctx context.Context, resource string) (string, error) {
	found, err := r.resources(ctx, schema.GroupVersionResource{Resource: resource})
	if err != nil {
		return resource, err
	}
	return singular(found[0]), nil
}

// Reset makes the next call ask the server.
func (r *restMapper) Reset() { r.outdated.Store(true) }

// ResetWithContext makes the next call ask the server.
func (r *restMapper) ResetWithContext(context.Context) { r.Reset() }

// resources finds every mapping that a resource, of which only the name must be told, may mean.
func (r *restMapper) resources(ctx context.Context, resource schema.GroupVersionResource) ([]*Mapping, error) {
	if resource.Resource == "" {
		return nil, fmt.Errorf("a resource must be present, got: %v", resource)
	}
	partial := reading{name: strings.ToLower(resource.Resource), version: resource.Version, group: resource.Group, grouped: resource.Group != ""}
	if partial.version == runtime.APIVersionInternal {
		partial.version = ""
	}
	text := strings.TrimRight(resource.Resource+"."+resource.Version+"."+resource.Group, ".")
	if resource.Version == "" {
		text = resource.GroupResource().String()
	}
	found, err := lookUp(ctx, r, query{text: text, asked: [2]reading{partial}, count: 1}, (*catalog).resources)
	return found, inTermsOf(err, &meta.NoResourceMatchError{PartialResource: resource})
}

// lookUp looks in what the mapper knows, after a reset in what the server says now.
func lookUp[T any](ctx context.Context, r *restMapper, q query, look func(*catalog, query) (T, error)) (T, error) {
	if r.outdated.Swap(false) {
		if _, err := r.mapper.discovery.Refresh(ctx); err != nil {
			r.outdated.Store(true)
			var none T
			return none, &UnavailableError{Name: q.String(), Causes: []error{err}}
		}
	}
	return find(ctx, r.mapper, q, look)
}
