package kinds

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/recorded"
)

// builtin returns the groups of built-in resources, decoded at first use and shared by the process.
var builtin = sync.OnceValues(func() ([]*group, error) {
	all, err := recorded.ReadGroups()
	if err != nil {
		return nil, err
	}
	groups := make([]*group, 0, len(all.Groups))
	for _, g := range all.Groups {
		one := &group{name: g.Name, priority: g.Priority}
		for _, v := range g.Versions {
			served := &groupVersion{group: g.Name, version: v.Name, priority: v.Priority}
			for _, r := range v.Resources {
				served.resources = append(served.resources, builtinResource(g, v.Name, r))
			}
			one.versions = append(one.versions, served)
		}
		groups = append(groups, one)
	}
	return groups, nil
})

func builtinResource(g recorded.Group, version string, r recorded.Resource) *Resource {
	resource := &Resource{
		Group: g.Name, Version: version, Kind: r.Kind, ListKind: r.ListKind, Plural: r.Plural, Singular: r.Singular,
		Namespaced: r.Namespaced, ShortNames: r.ShortNames, Categories: r.Categories, Verbs: r.Verbs,
		SelectableFields: r.FieldSelectors, StorageVersion: servedStorageVersion(g, version, r),
		storageVersionHash: r.StorageVersionHash,
	}
	if resource.ListKind == "" {
		resource.ListKind = r.Kind + "List"
	}
	resource.Subresources = make(map[string]Subresource, len(r.Subresources))
	for _, s := range r.Subresources {
		sub := Subresource{Name: s.Name, Group: s.Group, Version: s.Version, Kind: s.Kind, Verbs: s.Verbs}
		if s.Version == "" {
			sub.Group = g.Name
			sub.Version = version
		}
		resource.Subresources[s.Name] = sub
		resource.subresourceNames = append(resource.subresourceNames, s.Name)
	}
	resource.openapi = builtinOpenAPI(schema.GroupKind{Group: g.Name, Kind: r.Kind})
	return resource
}

// servedStorageVersion returns the recorded storage version if it is served, otherwise version. For
// downgrades, a server may store an older, unserved version.
func servedStorageVersion(g recorded.Group, version string, r recorded.Resource) string {
	for _, v := range g.Versions {
		if v.Name == r.StorageVersion {
			return v.Name
		}
	}
	if r.StorageVersion == "" {
		return ""
	}
	return version
}
