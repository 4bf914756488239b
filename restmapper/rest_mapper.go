package restmapper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
)

// RESTMapper adapts the mapper to the interface expected by controller-runtime, Helm and kustomize. Its methods without a context
// use ctx. The same value implements apimachinery 0.37's meta.ResettableRESTMapperWithContext, with a context for each call.
//
// It behaves like client-go's DeferredDiscoveryRESTMapper with short names: a name in several groups is not an error, but means
// the first group. A missing name is apimachinery's *meta.NoKindMatchError or *meta.NoResourceMatchError, without the suggestions
// of [Mapper.Resource]. A failure of discovery is always an [*UnavailableError]. Reset makes the next call refresh the snapshot.
func (m *Mapper) RESTMapper(ctx context.Context) meta.ResettableRESTMapper {
	return &restMapper{mapper: m, ctx: ctx}
}

type restMapper struct {
	mapper      *Mapper
	ctx         context.Context
	mustRefresh atomic.Bool // the next lookup refreshes the snapshot first
}

func (r *restMapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return r.KindForWithContext(r.ctx, resource)
}

func (r *restMapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return r.KindsForWithContext(r.ctx, resource)
}

func (r *restMapper) ResourceFor(resource schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return r.ResourceForWithContext(r.ctx, resource)
}

func (r *restMapper) ResourcesFor(resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return r.ResourcesForWithContext(r.ctx, resource)
}

func (r *restMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return r.RESTMappingWithContext(r.ctx, gk, versions...)
}

func (r *restMapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return r.RESTMappingsWithContext(r.ctx, gk, versions...)
}

func (r *restMapper) ResourceSingularizer(resource string) (string, error) {
	return r.ResourceSingularizerWithContext(r.ctx, resource)
}

func (r *restMapper) Reset() { r.mustRefresh.Store(true) }

func (r *restMapper) ResetWithContext(context.Context) { r.Reset() }

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

func (r *restMapper) KindsForWithContext(ctx context.Context, resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	found, err := r.resources(ctx, resource)
	return convertAll(found, kindOf), err
}

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

func (r *restMapper) ResourcesForWithContext(ctx context.Context, resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	found, err := r.resources(ctx, resource)
	return convertAll(found, func(r *discovery.Resource) schema.GroupVersionResource { return r.GVR }), err
}

func (r *restMapper) RESTMappingWithContext(ctx context.Context, gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	found, err := r.RESTMappingsWithContext(ctx, gk, versions...)
	if err != nil {
		return nil, err
	}
	for _, version := range versions {
		hasVersion := func(mapping *meta.RESTMapping) bool { return mapping.GroupVersionKind.Version == version }
		if i := slices.IndexFunc(found, hasVersion); i >= 0 {
			return found[i], nil
		}
	}
	return found[0], nil
}

func (r *restMapper) RESTMappingsWithContext(ctx context.Context, gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	q := kindQuery(gk.WithVersion(""))
	q.versions = slices.DeleteFunc(slices.Clone(versions), func(version string) bool {
		return version == "" || version == runtime.APIVersionInternal
	})
	return findMeta(ctx, r, q, (*index).restMappings, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions})
}

func (r *restMapper) ResourceSingularizerWithContext(ctx context.Context, resource string) (string, error) {
	found, err := r.resources(ctx, schema.GroupVersionResource{Resource: resource})
	if err != nil {
		return resource, err
	}
	return singular(found[0]), nil
}

// convertAll returns the distinct results, in order.
func convertAll[T comparable](resources []*discovery.Resource, convert func(*discovery.Resource) T) []T {
	var all []T
	for _, resource := range resources {
		if value := convert(resource); !slices.Contains(all, value) {
			all = append(all, value)
		}
	}
	return all
}

// resources returns every match of a resource. Only its name is required.
func (r *restMapper) resources(ctx context.Context, resource schema.GroupVersionResource) ([]*discovery.Resource, error) {
	if resource.Resource == "" {
		return nil, fmt.Errorf("a resource must be present, got: %v", resource)
	}
	in := interpretation{name: strings.ToLower(resource.Resource), version: resource.Version, group: resource.Group, hasGroup: resource.Group != ""}
	if in.version == runtime.APIVersionInternal {
		in.version = ""
	}
	q := query{interpretations: [2]interpretation{in}, count: 1}
	return findMeta(ctx, r, q, (*index).metaResources, &meta.NoResourceMatchError{PartialResource: resource})
}

// findMeta resolves a query, after a Reset with a refreshed snapshot. For a missing name it returns the bare missing error:
// kubectl and cli-runtime look for apimachinery's types without unwrapping.
func findMeta[T any](ctx context.Context, r *restMapper, q query, lookup func(*index, query) (T, error), missing error) (found T, err error) {
	if r.mustRefresh.Swap(false) {
		if _, err := r.mapper.discovery.Refresh(ctx); err != nil {
			r.mustRefresh.Store(true)
			return found, &UnavailableError{Name: q.String(), Causes: []error{err}}
		}
	}
	found, err = find(ctx, r.mapper, q, lookup)
	if _, isNoMatch := errors.AsType[*NoMatchError](err); isNoMatch {
		err = missing
	}
	return found, err
}

// kindOf returns the kind of a resource in the group version of its GVR, like client-go's mapper.
func kindOf(r *discovery.Resource) schema.GroupVersionKind {
	return r.GVR.GroupVersion().WithKind(r.GVK.Kind)
}

// metaResources returns all resources with the plural or singular, or else the resources of the first short name. A group without
// a match may be a prefix.
func (x *index) metaResources(q query) ([]*discovery.Resource, error) {
	in := q.interpretations[0]
	for _, in.groupIsPrefix = range []bool{false, true} {
		if in.groupIsPrefix && (in.group == "" || in.version != "") {
			break
		}
		if found := x.fullNamed(&in); len(found) > 0 {
			return found, nil
		}
		for short := range x.matches(&in, rankShortName) {
			// A name of the core group matches in any group, as in client-go.
			full := interpretation{name: short.GVR.Resource, group: short.GVR.Group, version: in.version, hasGroup: short.GVR.Group != ""}
			if found := x.fullNamed(&full); len(found) > 0 {
				return found, nil
			}
			return nil, errNoMatch // the resource has no kind
		}
	}
	return nil, errNoMatch
}

// fullNamed returns the resources with the name as plural or singular.
func (x *index) fullNamed(in *interpretation) []*discovery.Resource {
	return slices.DeleteFunc(slices.Collect(x.matches(in, rankName)), func(r *discovery.Resource) bool {
		return r.GVK.Kind == "" || (r.GVR.Resource != in.name && singular(r) != in.name)
	})
}

// restMappings returns the mappings of a kind, for each group version. The kind may be in lower case, or a list kind.
func (x *index) restMappings(q query) ([]*meta.RESTMapping, error) {
	var mappings []*meta.RESTMapping
	for _, resource := range x.ofKind(&q, q.interpretations[0].name) {
		mappings = append(mappings, restMapping(resource.GVR, kindOf(resource), resource.Namespaced))
	}
	if len(mappings) == 0 {
		mappings = x.listMappings(&q)
	}
	if len(mappings) == 0 {
		return nil, errNoMatch
	}
	return mappings, nil
}

// ofKind returns the resources of a kind. Of two resources in a group version the later wins, as in client-go.
func (x *index) ofKind(q *query, name string) []*discovery.Resource {
	in := q.interpretations[0]
	in.isKind = false
	var found []*discovery.Resource
	for e := range x.named(name) {
		resource := e.resource
		kind := e.resource.GVK.Kind
		switch last := len(found) - 1; {
		case kind == "" || (kind != name && strings.ToLower(kind) != name) || !in.admits(resource) || !q.acceptsVersion(resource.GVR.Version):
		case last >= 0 && found[last].GVR.GroupVersion() == resource.GVR.GroupVersion():
			found[last] = resource
		default:
			found = append(found, resource)
		}
	}
	return found
}

// listMappings returns mappings for list kinds, like client-go: kubectl and Helm map the kind of every file, including List and
// DeploymentList. No server serves these resources.
func (x *index) listMappings(q *query) []*meta.RESTMapping {
	listKind := q.interpretations[0].name
	group := q.interpretations[0].group
	kind, isList := strings.CutSuffix(listKind, "List")
	if !isList {
		return nil
	}
	var mappings []*meta.RESTMapping
	for _, resource := range x.ofKind(q, kind) {
		gvk := resource.GVR.GroupVersion().WithKind(listKind)
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		mappings = append(mappings, restMapping(plural, gvk, resource.Namespaced))
	}
	if kind != "" {
		return mappings
	}
	for _, g := range x.snapshot.Groups {
		if g.Name != group {
			continue
		}
		for version := range g.HealthyFirst() {
			if gv := (schema.GroupVersion{Group: group, Version: version.Name}); q.acceptsVersion(version.Name) {
				mappings = append(mappings, restMapping(gv.WithResource("lists"), gv.WithKind("List"), false))
			}
		}
	}
	return mappings
}

func restMapping(gvr schema.GroupVersionResource, gvk schema.GroupVersionKind, namespaced bool) *meta.RESTMapping {
	var scope meta.RESTScope = meta.RESTScopeRoot
	if namespaced {
		scope = meta.RESTScopeNamespace
	}
	return &meta.RESTMapping{Resource: gvr, GroupVersionKind: gvk, Scope: scope}
}
