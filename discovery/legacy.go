package discovery

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// parallelVersions bounds how many group versions are asked for at once, versionPatience how long each may take.
const (
	parallelVersions = 16
	versionPatience  = 10 * time.Second
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

// fetchVersions fills in the resources of every version of groups. A version that cannot be read keeps its error and
// spoils nothing else; one that is gone since the groups were listed has no resources.
func (c *Client) fetchVersions(ctx context.Context, groups []Group) error {
	limit := make(chan struct{}, parallelVersions)
	var all sync.WaitGroup
	for g := range groups {
		for v := range groups[g].Versions {
			gv, version := schema.GroupVersion{Group: groups[g].Name, Version: groups[g].Versions[v].Name}, &groups[g].Versions[v]
			limit <- struct{}{}
			all.Go(func() {
				defer func() { <-limit }()
				version.Resources, version.Err = c.fetchVersion(ctx, gv)
			})
		}
	}
	all.Wait()
	return ctx.Err()
}

func versionPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

func (c *Client) fetchVersion(ctx context.Context, gv schema.GroupVersion) ([]*Resource, error) {
	path := versionPath(gv)
	// A server that waits for somebody else's must not keep the rest of the answer back.
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	answer, err := get(ctx, c.conn, path, plainJSON())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := decodeKind(answer.body, "APIResourceList", &list); err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	return resourcesOf(gv, list.APIResources), nil
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
