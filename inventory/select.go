package inventory

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
)

var (
	events            = schema.GroupResource{Resource: "events"}
	eventsOfGroup     = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
	endpoints         = schema.GroupResource{Resource: "endpoints"}
	endpointSlices    = schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}
	componentStatuses = schema.GroupResource{Resource: "componentstatuses"}
)

// selectResources returns the resources to list, in the server's order.
func selectResources(snapshot *discovery.Snapshot, opts *ListOptions) (selected []*discovery.Resource) {
	filter := *cmp.Or(opts.Resources, &discovery.ResourceFilter{})
	filter.Verbs = append(slices.Clone(filter.Verbs), "list")
	served := map[schema.GroupResource]bool{}
	for resource := range snapshot.PreferredResources(&filter) {
		if (opts.Namespaces == nil || resource.Namespaced) && (opts.Select == nil || opts.Select(resource)) {
			selected = append(selected, resource)
			served[resource.GVR.GroupResource()] = true
		}
	}
	return slices.DeleteFunc(selected, func(resource *discovery.Resource) bool {
		switch resource.GVR.GroupResource() {
		case eventsOfGroup: // the same objects
			return served[events]
		case endpoints: // computed from the same Services, and deprecated
			return served[endpointSlices] && !opts.IncludeVirtual
		case componentStatuses:
			return !opts.IncludeVirtual
		}
		return false
	})
}

// unavailableVersions returns an error for each selected group version that discovery could not read.
func unavailableVersions(snapshot *discovery.Snapshot, filter *discovery.ResourceFilter) (failed []*ResourceError) {
	for gv, version := range snapshot.Versions() {
		if !version.Healthy() && isSelectedGroup(filter, gv.Group) {
			failed = append(failed, &ResourceError{Group: gv.Group, Version: gv.Version, Err: cmp.Or(version.Err, errUnavailable)})
		}
	}
	return failed
}

func isSelectedGroup(filter *discovery.ResourceFilter, group string) bool {
	return filter == nil || len(filter.Groups) == 0 || slices.Contains(filter.Groups, group)
}

// groupByKind groups resources with the same name of their kind, in the order of the first of each.
func groupByKind(resources []*discovery.Resource) (groups [][]*discovery.Resource) {
	index := map[string]int{}
	for _, resource := range resources {
		i, found := index[resource.GVK.Kind]
		if !found {
			i = len(groups)
			index[resource.GVK.Kind] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], resource)
	}
	return groups
}
