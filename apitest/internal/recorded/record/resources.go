package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/apitest/internal/recorded"
	"github.com/anykind/anykind/transport"
)

// groupDiscovery is a group of aggregated discovery.
type groupDiscovery struct {
	Metadata metav1.ObjectMeta
	Versions []struct {
		Version   string
		Resources []struct {
			Resource         string
			SingularResource string
			Scope            string
			ResponseKind     metav1.GroupVersionKind
			Verbs            []string
			ShortNames       []string
			Categories       []string
			Subresources     []struct {
				Subresource  string
				ResponseKind *metav1.GroupVersionKind
				Verbs        []string
			}
		}
	}
}

// priorities are the priorities of a group version's APIService.
type priorities struct{ group, version int }

func recordResources(ctx context.Context, api *server) (*recorded.Groups, recorded.Columns, error) {
	all := &recorded.Groups{}
	columns := recorded.Columns{}
	if err := api.get(ctx, "/version", "", &all.Version); err != nil {
		return nil, nil, err
	}
	order, err := readPriorities(ctx, api)
	if err != nil {
		return nil, nil, err
	}
	for _, root := range []string{"/api", "/apis"} {
		var list struct{ Items []groupDiscovery }
		if err := api.get(ctx, root, aggregated, &list); err != nil {
			return nil, nil, err
		}
		for _, found := range list.Items {
			group, err := recordGroup(ctx, api, root, found, order, columns)
			if err != nil {
				return nil, nil, err
			}
			all.Groups = append(all.Groups, *group)
		}
	}
	return all, columns, nil
}

func readPriorities(ctx context.Context, api *server) (map[string]priorities, error) {
	var list struct {
		Items []struct {
			Spec struct {
				Group, Version       string
				GroupPriorityMinimum int
				VersionPriority      int
			}
		}
	}
	if err := api.get(ctx, "/apis/apiregistration.k8s.io/v1/apiservices", "", &list); err != nil {
		return nil, err
	}
	order := map[string]priorities{}
	for _, one := range list.Items {
		order[one.Spec.Group+"/"+one.Spec.Version] = priorities{one.Spec.GroupPriorityMinimum, one.Spec.VersionPriority}
	}
	// The aggregator sorts its own group first, without an APIService.
	order["apiregistration.k8s.io/v1"] = priorities{20000, 18}
	return order, nil
}

func recordGroup(ctx context.Context, api *server, root string, found groupDiscovery, order map[string]priorities, columns recorded.Columns) (*recorded.Group, error) {
	group := &recorded.Group{Name: found.Metadata.Name}
	for _, v := range found.Versions {
		priority, known := order[group.Name+"/"+v.Version]
		if !known {
			return nil, fmt.Errorf("group version %s/%s: no APIService", group.Name, v.Version)
		}
		group.Priority = max(group.Priority, priority.group)
		version := recorded.Version{Name: v.Version, Priority: priority.version}
		for _, r := range v.Resources {
			one := recorded.Resource{
				Plural: r.Resource, Singular: r.SingularResource, Kind: r.ResponseKind.Kind, Namespaced: r.Scope == "Namespaced",
				ShortNames: r.ShortNames, Categories: r.Categories, Verbs: r.Verbs,
			}
			for _, s := range r.Subresources {
				sub := recorded.Subresource{Name: s.Subresource, Verbs: s.Verbs}
				if s.ResponseKind != nil {
					sub.Group = s.ResponseKind.Group
					sub.Version = s.ResponseKind.Version
					sub.Kind = s.ResponseKind.Kind
				}
				one.Subresources = append(one.Subresources, sub)
			}
			version.Resources = append(version.Resources, one)
		}
		group.Versions = append(group.Versions, version)
	}
	for i := range group.Versions {
		if err := recordVersion(ctx, api, root, group, &group.Versions[i], columns); err != nil {
			return nil, err
		}
	}
	return group, nil
}

// recordVersion adds data missing in aggregated discovery: fields of legacy discovery, and list kinds and columns.
func recordVersion(ctx context.Context, api *server, root string, group *recorded.Group, version *recorded.Version, columns recorded.Columns) error {
	path := root + "/" + version.Name
	if group.Name != "" {
		path = root + "/" + group.Name + "/" + version.Name
	}
	var legacy metav1.APIResourceList
	if err := api.get(ctx, path, "", &legacy); err != nil {
		return err
	}
	for i := range version.Resources {
		one := &version.Resources[i]
		for _, r := range legacy.APIResources {
			if r.Name == one.Plural {
				one.KindGroup = r.Group
				one.KindVersion = r.Version
				one.StorageVersionHash = r.StorageVersionHash
			}
			for s := range one.Subresources {
				if r.Name == one.Plural+"/"+one.Subresources[s].Name {
					one.Subresources[s].Group = r.Group
					one.Subresources[s].Version = r.Version
					one.Subresources[s].Kind = r.Kind
				}
			}
		}
		one.StorageVersion = storageVersion(group, version.Name, one)
		if slices.Contains(one.Verbs, "list") {
			if err := recordList(ctx, api, path+"/"+one.Plural, one, columns); err != nil {
				return err
			}
		}
	}
	return nil
}

// storageVersion returns the version matching the server's storageVersionHash, or the served version if objects are stored in
// another group.
func storageVersion(group *recorded.Group, served string, resource *recorded.Resource) string {
	if resource.StorageVersionHash == "" {
		return ""
	}
	candidates := []string{served}
	for _, v := range group.Versions {
		candidates = append(candidates, v.Name)
	}
	candidates = append(candidates, "v1", "v1beta1", "v2")
	for _, candidate := range candidates {
		sum := sha256.Sum256([]byte(group.Name + "/" + candidate + "/" + resource.Kind))
		if base64.StdEncoding.EncodeToString(sum[:8]) == resource.StorageVersionHash {
			return candidate
		}
	}
	return served
}

// selectorCandidates are fields selectable in some kind of some release.
var selectorCandidates = []string{
	"status.phase", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
	"status.podIP", "status.podIPs", "status.nominatedNodeName", "spec.unschedulable", "spec.signerName", "spec.type",
	"spec.clusterIP", "spec.nodeName", "spec.driver", "spec.poolName", "spec.pool.name", "status.successful", "status.replicas",
	"type", "reason", "reportingComponent", "reportingController", "source", "involvedObject.kind", "involvedObject.namespace",
	"involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
	"involvedObject.fieldPath", "regarding.kind", "regarding.name", "regarding.namespace", "regarding.uid", "name",
	"metadata.generateName", "spec.storageClassName", "spec.volumeName", "provisioner", "spec.group", "spec.service.name",
	"spec.attacher", "spec.holderIdentity", "driver", "addressType",
}

// recordList records the kind of a resource's lists, its table columns and its selectable fields.
func recordList(ctx context.Context, api *server, path string, resource *recorded.Resource, columns recorded.Columns) error {
	var list struct{ Kind string }
	if err := api.get(ctx, path+"?limit=1", "", &list); err != nil {
		return err
	}
	if list.Kind != resource.Kind+"List" {
		resource.ListKind = list.Kind
	}
	var table metav1.Table
	if err := api.get(ctx, path+"?limit=1", "application/json;as=Table;v=v1;g=meta.k8s.io", &table); err != nil {
		return err
	}
	for _, c := range table.ColumnDefinitions {
		columns[path] = append(columns[path], recorded.Column{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: c.Priority,
		})
	}
	for _, field := range selectorCandidates {
		query := url.Values{"limit": {"1"}, "fieldSelector": {field + "=x"}}
		_, err := api.send(ctx, &transport.Request{Path: path, Query: query})
		if err != nil && !apierrors.IsBadRequest(err) {
			return err
		}
		if err == nil {
			resource.FieldSelectors = append(resource.FieldSelectors, field)
		}
	}
	slices.SortFunc(resource.FieldSelectors, cmp.Compare)
	resource.FieldSelectors = slices.Compact(resource.FieldSelectors)
	return nil
}
