package clientgo

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgo "k8s.io/client-go/discovery"

	"github.com/anykind/anykind/discovery"
)

// convert converts a snapshot to groups and resources like client-go converts aggregated discovery. Stale versions are left out
// of the groups. Stale and unreadable versions have an error in place of resources.
func convert(snapshot *discovery.Snapshot) (
	*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error,
) {
	groups := &metav1.APIGroupList{Groups: make([]metav1.APIGroup, 0, len(snapshot.Groups))}
	resources := map[schema.GroupVersion]*metav1.APIResourceList{}
	failed := map[schema.GroupVersion]error{}
	for i := range snapshot.Groups {
		group := &snapshot.Groups[i]
		converted := metav1.APIGroup{Name: group.Name}
		for j := range group.Versions {
			v := &group.Versions[j]
			gv := schema.GroupVersion{Group: group.Name, Version: v.Name}
			if v.Stale {
				failed[gv] = fmt.Errorf("stale GroupVersion discovery: %v", gv)
				continue
			}
			served := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v.Name}
			converted.Versions = append(converted.Versions, served)
			if converted.PreferredVersion.Version == "" {
				converted.PreferredVersion = served
			}
			if v.Err != nil {
				failed[gv] = v.Err
				continue
			}
			resources[gv] = convertResources(gv, v.Resources)
		}
		groups.Groups = append(groups.Groups, converted)
	}
	return groups, resources, failed
}

func convertResources(gv schema.GroupVersion, resources []*discovery.Resource) *metav1.APIResourceList {
	list := &metav1.APIResourceList{GroupVersion: gv.String()}
	for _, r := range resources {
		if r.GVK.Kind != "" {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: r.GVR.Resource, SingularName: r.Singular, Namespaced: r.Namespaced,
				Group: r.GVK.Group, Version: r.GVK.Version, Kind: r.GVK.Kind,
				Verbs: slices.Clone(r.Verbs), ShortNames: slices.Clone(r.ShortNames), Categories: slices.Clone(r.Categories),
				StorageVersionHash: r.StorageVersionHash,
			})
		}
		for _, sub := range r.Subresources {
			if sub.GVK.Kind == "" {
				continue
			}
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: r.GVR.Resource + "/" + sub.Name, SingularName: r.Singular, Namespaced: r.Namespaced,
				Group: sub.GVK.Group, Version: sub.GVK.Version, Kind: sub.GVK.Kind, Verbs: slices.Clone(sub.Verbs),
			})
		}
	}
	return list
}

// discoveryFailure returns client-go's error for unreadable group versions, or nil.
func discoveryFailure(failed map[schema.GroupVersion]error) error {
	if len(failed) == 0 {
		return nil
	}
	return &clientgo.ErrGroupDiscoveryFailed{Groups: failed}
}

// preferredResources returns a list for each version of a group. Each resource is in the list of the preferred version, or else
// of the first version with the resource. Subresources are left out.
func preferredResources(group *metav1.APIGroup, served map[schema.GroupVersion]*metav1.APIResourceList) (lists []*metav1.APIResourceList) {
	byVersion := map[string]*metav1.APIResourceList{}
	order := []string{group.PreferredVersion.Version}
	for _, version := range group.Versions {
		if served[schema.GroupVersion{Group: group.Name, Version: version.Version}] == nil {
			continue
		}
		list := &metav1.APIResourceList{GroupVersion: version.GroupVersion}
		lists = append(lists, list)
		byVersion[version.Version] = list
		order = append(order, version.Version)
	}
	chosen := sets.New[string]()
	for _, version := range order {
		list := byVersion[version]
		if list == nil {
			continue
		}
		for _, resource := range served[schema.GroupVersion{Group: group.Name, Version: version}].APIResources {
			if !strings.Contains(resource.Name, "/") && !chosen.Has(resource.Name) {
				chosen.Insert(resource.Name)
				list.APIResources = append(list.APIResources, resource)
			}
		}
	}
	return lists
}
