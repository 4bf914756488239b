package discovery

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/sanitize"
)

// This file converts between snapshots and the types of legacy discovery. kubectl's cache has the legacy format, too.

// decodeCoreVersions decodes the legacy response of /api.
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

// decodeGroupList decodes the legacy response of /apis.
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

// groupOf returns a group with its versions, preferred version first.
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

// groupListOf is the inverse of [decodeGroupList]. It omits stale versions: kubectl would request each again and report an
// error.
func groupListOf(groups []Group) *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, group := range groups {
		item := metav1.APIGroup{Name: group.Name}
		for _, version := range group.Versions {
			if version.Stale {
				continue
			}
			gv := schema.GroupVersion{Group: group.Name, Version: version.Name}
			item.Versions = append(item.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: version.Name})
		}
		if len(item.Versions) > 0 {
			item.PreferredVersion = item.Versions[0]
		}
		list.Groups = append(list.Groups, item)
	}
	return list
}

// decodeResourceList decodes the legacy response for a group version. It also returns the document's group version.
func decodeResourceList(body []byte, gv schema.GroupVersion, in *interner) (resources []*Resource, groupVersion string, err error) {
	r := valueReader{jsonread.Borrow(body), in}
	defer r.reader.Release()
	const want = "APIResourceList"
	var kind string
	var entries []metav1.APIResource
	err = r.object(func(field string) (err error) {
		switch field {
		case "kind":
			kind, err = r.text()
		case "groupVersion":
			groupVersion, err = r.text()
		case "resources":
			err = r.list(func() error {
				entry, err := r.resourceEntry()
				entries = append(entries, entry)
				return err
			})
		default:
			err = r.skip()
		}
		return err
	})
	if err = cmp.Or(err, r.reader.End()); err != nil {
		return nil, "", fmt.Errorf("decode %s: %w", want, sanitize.Error(err, maxText))
	}
	if err := checkKind(kind, want); err != nil {
		return nil, "", err
	}
	resources = resourcesOf(gv, entries)
	for _, resource := range resources {
		for i := range resource.Subresources {
			sub := &resource.Subresources[i]
			sub.Name = in.text(sub.Name)
		}
	}
	return resources, groupVersion, nil
}

func (r *valueReader) resourceEntry() (entry metav1.APIResource, err error) {
	err = r.object(func(field string) (err error) {
		switch field {
		case "name":
			var name []byte
			name, err = r.textBytes()
			entry.Name = string(name)
		case "singularName":
			entry.SingularName, err = r.text()
		case "namespaced":
			entry.Namespaced, err = r.boolean()
		case "group":
			entry.Group, err = r.text()
		case "version":
			entry.Version, err = r.text()
		case "kind":
			entry.Kind, err = r.text()
		case "verbs":
			entry.Verbs, err = r.texts((*interner).listInKey)
		case "shortNames":
			entry.ShortNames, err = r.texts((*interner).newList)
		case "categories":
			entry.Categories, err = r.texts((*interner).listInKey)
		case "storageVersionHash":
			entry.StorageVersionHash, err = r.text()
		default:
			err = r.skip()
		}
		return err
	})
	return entry, err
}

// resourcesOf adds each "resource/subresource" entry to its resource. The entries may be in any order.
func resourcesOf(gv schema.GroupVersion, entries []metav1.APIResource) []*Resource {
	var resources []*Resource
	byName := map[string]*Resource{}
	for i := range entries {
		entry := &entries[i]
		name, sub, isSub := strings.Cut(entry.Name, "/")
		resource := byName[name]
		if resource == nil {
			resource = &Resource{GVR: gv.WithResource(name), Namespaced: entry.Namespaced}
			byName[name] = resource
			resources = append(resources, resource)
		}
		kind := kindIn(gv, schema.GroupVersionKind{Group: entry.Group, Version: entry.Version, Kind: entry.Kind})
		if isSub {
			resource.Subresources = append(resource.Subresources, Subresource{Name: sub, GVK: kind, Verbs: entry.Verbs})
			continue
		}
		resource.GVK = kind
		resource.Singular = entry.SingularName
		resource.Verbs = entry.Verbs
		resource.ShortNames = entry.ShortNames
		resource.Categories = entry.Categories
		resource.StorageVersionHash = entry.StorageVersionHash
	}
	return resources
}

// entriesOf is the inverse of [resourcesOf]. As in client-go, subresources have the singular name of their resource. A resource
// without a kind is represented by its subresources alone.
func entriesOf(gv schema.GroupVersion, resources []*Resource) []metav1.APIResource {
	var entries []metav1.APIResource
	add := func(entry metav1.APIResource, kind schema.GroupVersionKind) {
		entry.Kind = kind.Kind
		if kind.GroupVersion() != gv {
			entry.Group = kind.Group
			entry.Version = kind.Version
		}
		entries = append(entries, entry)
	}
	for _, r := range resources {
		entry := metav1.APIResource{Name: r.GVR.Resource, SingularName: r.Singular, Namespaced: r.Namespaced}
		if r.GVK.Kind != "" {
			parent := entry
			parent.Verbs = r.Verbs
			parent.ShortNames = r.ShortNames
			parent.Categories = r.Categories
			parent.StorageVersionHash = r.StorageVersionHash
			add(parent, r.GVK)
		}
		for _, sub := range r.Subresources {
			child := entry
			child.Name = r.GVR.Resource + "/" + sub.Name
			child.Verbs = sub.Verbs
			add(child, sub.GVK)
		}
	}
	return entries
}
