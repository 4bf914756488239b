package discovery

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// decodeCoreVersions reads what an older server answers at /api.
func decodeCoreVersions(body []byte) ([]Group, error) {
	var versions metav1.APIVersions
	if err := decodeKind(body, "APIVersions", &versions); err != nil {
		return nil, err
	}
	core := Group{}
	for _, name := range versions.Versions {
		core.Versions = append(core.Versions, Version{Name: name})
	}
	return []Group{core}, nil
}

// decodeGroupList reads what an older server answers at /apis.
func decodeGroupList(body []byte) ([]Group, error) {
	var list metav1.APIGroupList
	if err := decodeKind(body, "APIGroupList", &list); err != nil {
		return nil, err
	}
	groups := make([]Group, 0, len(list.Groups))
	for i := range list.Groups {
		groups = append(groups, groupOf(&list.Groups[i]))
	}
	return groups, nil
}

// groupOf lists a group's versions, the preferred one first.
func groupOf(item *metav1.APIGroup) Group {
	group := Group{Name: item.Name}
	if preferred := item.PreferredVersion.Version; preferred != "" {
		group.Versions = append(group.Versions, Version{Name: preferred})
	}
	for _, version := range item.Versions {
		if version.Version != item.PreferredVersion.Version {
			group.Versions = append(group.Versions, Version{Name: version.Version})
		}
	}
	return group
}

// resourcesOf hangs each "resource/subresource" entry on its resource, wherever in the list the two stand.
func resourcesOf(gv schema.GroupVersion, entries []metav1.APIResource) []*Resource {
	var resources []*Resource
	byName := map[string]*Resource{}
	named := func(name string, namespaced bool) *Resource {
		if byName[name] == nil {
			byName[name] = &Resource{GVR: gv.WithResource(name), Namespaced: namespaced}
			resources = append(resources, byName[name])
		}
		return byName[name]
	}
	for i := range entries {
		entry := &entries[i]
		kind := kindIn(gv, &metav1.GroupVersionKind{Group: entry.Group, Version: entry.Version, Kind: entry.Kind})
		name, sub, isSub := strings.Cut(entry.Name, "/")
		resource := named(name, entry.Namespaced)
		if isSub {
			resource.Subresources = append(resource.Subresources, Subresource{Name: sub, GVK: kind, Verbs: entry.Verbs})
			continue
		}
		resource.GVK, resource.Singular, resource.Verbs = kind, entry.SingularName, entry.Verbs
		resource.ShortNames, resource.Categories = entry.ShortNames, entry.Categories
		resource.StorageVersionHash = entry.StorageVersionHash
	}
	return resources
}
