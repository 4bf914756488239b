package discovery

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// aggregatedList is APIGroupDiscoveryList of apidiscovery.k8s.io, v2 and v2beta1 alike, as far as it is read here.
type aggregatedList struct {
	metav1.TypeMeta `json:",inline"`

	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Versions []aggregatedVersion `json:"versions"`
	} `json:"items"`
}

type aggregatedVersion struct {
	Version   string               `json:"version"`
	Resources []aggregatedResource `json:"resources"`
	Freshness string               `json:"freshness"`
}

type aggregatedResource struct {
	Resource         string                   `json:"resource"`
	ResponseKind     *metav1.GroupVersionKind `json:"responseKind"`
	Scope            string                   `json:"scope"`
	SingularResource string                   `json:"singularResource"`
	Verbs            []string                 `json:"verbs"`
	ShortNames       []string                 `json:"shortNames"`
	Categories       []string                 `json:"categories"`
	Subresources     []aggregatedSubresource  `json:"subresources"`
}

type aggregatedSubresource struct {
	Subresource  string                   `json:"subresource"`
	ResponseKind *metav1.GroupVersionKind `json:"responseKind"`
	Verbs        []string                 `json:"verbs"`
}

func decodeAggregated(body []byte) ([]Group, error) {
	var list aggregatedList
	if err := decodeKind(body, "APIGroupDiscoveryList", &list); err != nil {
		return nil, err
	}
	groups := make([]Group, 0, len(list.Items))
	for _, item := range list.Items {
		group := Group{Name: item.Metadata.Name}
		for i := range item.Versions {
			group.Versions = append(group.Versions, item.Versions[i].version(group.Name))
		}
		groups = append(groups, group)
	}
	return groups, nil
}

func (v *aggregatedVersion) version(group string) Version {
	gv := schema.GroupVersion{Group: group, Version: v.Version}
	version := Version{Name: v.Version, Stale: v.Freshness == "Stale"}
	for i := range v.Resources {
		version.Resources = append(version.Resources, v.Resources[i].resource(gv))
	}
	return version
}

func (r *aggregatedResource) resource(gv schema.GroupVersion) *Resource {
	resource := &Resource{
		GVR:        gv.WithResource(r.Resource),
		GVK:        kindIn(gv, r.ResponseKind),
		Singular:   r.SingularResource,
		ShortNames: r.ShortNames,
		Categories: r.Categories,
		Namespaced: r.Scope == "Namespaced",
		Verbs:      r.Verbs,
	}
	for _, sub := range r.Subresources {
		resource.Subresources = append(resource.Subresources,
			Subresource{Name: sub.Subresource, GVK: kindIn(gv, sub.ResponseKind), Verbs: sub.Verbs})
	}
	return resource
}

// kindIn completes a kind that leaves its version, and with it its group, to where it stands.
func kindIn(gv schema.GroupVersion, kind *metav1.GroupVersionKind) schema.GroupVersionKind {
	switch {
	case kind == nil || kind.Kind == "":
		return schema.GroupVersionKind{}
	case kind.Version == "":
		return gv.WithKind(kind.Kind)
	default:
		return schema.GroupVersionKind(*kind)
	}
}
