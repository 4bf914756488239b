package kinds

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apiVersions returns the response to /api.
func apiVersions(host string) *metav1.APIVersions {
	return &metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		Versions:                   []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: host}},
	}
}

// groupList returns the response to /apis.
func (s *snapshot) groupList() *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, g := range s.legacyGroups() {
		list.Groups = append(list.Groups, g.legacy())
	}
	return list
}

// legacy returns the group as an item of the response to /apis.
func (g *group) legacy() metav1.APIGroup {
	legacy := metav1.APIGroup{Name: g.name}
	for _, v := range g.versions {
		legacy.Versions = append(legacy.Versions, metav1.GroupVersionForDiscovery{GroupVersion: v.name(), Version: v.version})
	}
	legacy.PreferredVersion = legacy.Versions[0]
	return legacy
}

// resourceList returns the response to /api/v1 or /apis/GROUP/VERSION.
func (v *groupVersion) resourceList() *metav1.APIResourceList {
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: v.name(), APIResources: []metav1.APIResource{},
	}
	if v.group == "" {
		list.APIVersion = ""
	}
	for _, r := range v.resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Plural, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind, Verbs: r.Verbs,
			ShortNames: r.ShortNames, Categories: r.Categories, StorageVersionHash: r.storageVersionHash,
		})
		for _, name := range r.subresourceNames {
			sub := r.Subresources[name]
			one := metav1.APIResource{Name: r.Plural + "/" + name, Namespaced: r.Namespaced, Kind: sub.Kind, Verbs: sub.Verbs}
			if sub.Group != r.Group || sub.Version != r.Version {
				one.Group = sub.Group
				one.Version = sub.Version
			}
			list.APIResources = append(list.APIResources, one)
		}
	}
	return list
}

// Types of apidiscovery.k8s.io/v2, copied from k8s.io/api.
type (
	groupDiscoveryList struct {
		Kind       string            `json:"kind"`
		APIVersion string            `json:"apiVersion"`
		Metadata   metav1.ListMeta   `json:"metadata"`
		Items      []*groupDiscovery `json:"items"`
	}
	groupDiscovery struct {
		Metadata groupMetadata      `json:"metadata"`
		Versions []versionDiscovery `json:"versions"`
	}
	groupMetadata struct {
		Name string `json:"name,omitempty"`
	}
	versionDiscovery struct {
		Version   string              `json:"version"`
		Resources []resourceDiscovery `json:"resources"`
		Freshness string              `json:"freshness"`
	}
	resourceDiscovery struct {
		Resource         string                   `json:"resource"`
		ResponseKind     *metav1.GroupVersionKind `json:"responseKind"`
		Scope            string                   `json:"scope"`
		SingularResource string                   `json:"singularResource"`
		Verbs            []string                 `json:"verbs"`
		ShortNames       []string                 `json:"shortNames,omitempty"`
		Categories       []string                 `json:"categories,omitempty"`
		Subresources     []subresourceDiscovery   `json:"subresources,omitempty"`
	}
	subresourceDiscovery struct {
		Subresource  string                   `json:"subresource"`
		ResponseKind *metav1.GroupVersionKind `json:"responseKind"`
		Verbs        []string                 `json:"verbs"`
	}
)

// aggregatedDocument is a response of aggregated discovery.
type aggregatedDocument struct {
	json []byte
	etag string
}

// aggregatedDocuments are the responses to /api and /apis.
type aggregatedDocuments struct {
	core, groups aggregatedDocument
}

func (s *snapshot) makeAggregated() (documents aggregatedDocuments, err error) {
	core := []*groupDiscovery{}
	groups := []*groupDiscovery{}
	for _, g := range s.groups {
		if g.name == "" {
			core = append(core, g.aggregated())
		} else {
			groups = append(groups, g.aggregated())
		}
	}
	if documents.core, err = newAggregatedDocument(core); err != nil {
		return documents, err
	}
	documents.groups, err = newAggregatedDocument(groups)
	return documents, err
}

func newAggregatedDocument(items []*groupDiscovery) (aggregatedDocument, error) {
	text, err := json.Marshal(groupDiscoveryList{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2", Items: items})
	if err != nil {
		return aggregatedDocument{}, fmt.Errorf("encode aggregated discovery: %w", err)
	}
	return aggregatedDocument{json: text, etag: fmt.Sprintf("%X", sha512.Sum512(text))}, nil
}

func (g *group) aggregated() *groupDiscovery {
	found := &groupDiscovery{Metadata: groupMetadata{Name: g.name}}
	for _, v := range g.versions {
		one := versionDiscovery{Version: v.version, Freshness: "Current", Resources: []resourceDiscovery{}}
		for _, r := range v.resources {
			one.Resources = append(one.Resources, r.aggregated())
		}
		found.Versions = append(found.Versions, one)
	}
	return found
}

func (r *Resource) aggregated() resourceDiscovery {
	found := resourceDiscovery{
		Resource: r.Plural, ResponseKind: r.responseKind(r.Group, r.Version, r.Kind), Scope: "Cluster", SingularResource: r.Singular,
		Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
	}
	if r.Namespaced {
		found.Scope = "Namespaced"
	}
	for _, name := range r.subresourceNames {
		sub := r.Subresources[name]
		found.Subresources = append(found.Subresources, subresourceDiscovery{
			Subresource: name, ResponseKind: r.responseKind(sub.Group, sub.Version, sub.Kind), Verbs: sub.Verbs,
		})
	}
	return found
}

// responseKind returns the kind of responses. For a built-in resource the real server omits the group and version if they are the
// resource's own.
func (r *Resource) responseKind(group, version, kind string) *metav1.GroupVersionKind {
	if r.Definition == nil && group == r.Group && version == r.Version {
		return &metav1.GroupVersionKind{Kind: kind}
	}
	return &metav1.GroupVersionKind{Group: group, Version: version, Kind: kind}
}
