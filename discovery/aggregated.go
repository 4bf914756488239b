package discovery

import (
	"fmt"

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
	Version   repeated             `json:"version"`
	Resources []aggregatedResource `json:"resources"`
	Freshness repeated             `json:"freshness"`
}

type aggregatedResource struct {
	Resource         string                  `json:"resource"`
	ResponseKind     aggregatedKind          `json:"responseKind"`
	Scope            repeated                `json:"scope"`
	SingularResource string                  `json:"singularResource"`
	Verbs            repeatedList            `json:"verbs"`
	ShortNames       []string                `json:"shortNames"`
	Categories       repeatedList            `json:"categories"`
	Subresources     []aggregatedSubresource `json:"subresources"`
}

type aggregatedSubresource struct {
	Subresource  repeated       `json:"subresource"`
	ResponseKind aggregatedKind `json:"responseKind"`
	Verbs        repeatedList   `json:"verbs"`
}

type aggregatedKind struct {
	Group   repeated `json:"group"`
	Version repeated `json:"version"`
	Kind    repeated `json:"kind"`
}

func decodeAggregated(body []byte) ([]Group, error) {
	var list aggregatedList
	if err := unmarshalRepetitive(body, &list); err != nil {
		return nil, fmt.Errorf("the answer is no APIGroupDiscoveryList: %w", err)
	}
	if list.Kind != "APIGroupDiscoveryList" {
		return nil, fmt.Errorf("the answer is no APIGroupDiscoveryList: its kind is %q", list.Kind)
	}
	groups := make([]Group, 0, len(list.Items))
	for i := range list.Items {
		item := &list.Items[i]
		group := Group{Name: item.Metadata.Name, Versions: make([]Version, 0, len(item.Versions))}
		for v := range item.Versions {
			group.Versions = append(group.Versions, item.Versions[v].version(group.Name))
		}
		groups = append(groups, group)
	}
	return groups, nil
}

func (v *aggregatedVersion) version(group string) Version {
	gv := schema.GroupVersion{Group: group, Version: string(v.Version)}
	version := Version{Name: gv.Version, Stale: v.Freshness == "Stale"}
	if len(v.Resources) == 0 {
		return version
	}
	// One piece of memory for all of a version's resources: they live and die together.
	resources := make([]Resource, len(v.Resources))
	version.Resources = make([]*Resource, len(v.Resources))
	for i := range v.Resources {
		resources[i] = v.Resources[i].resource(gv)
		version.Resources[i] = &resources[i]
	}
	return version
}

func (r *aggregatedResource) resource(gv schema.GroupVersion) Resource {
	resource := Resource{
		GVR:        gv.WithResource(r.Resource),
		GVK:        r.ResponseKind.in(gv),
		Singular:   r.SingularResource,
		ShortNames: r.ShortNames,
		Categories: r.Categories,
		Namespaced: r.Scope == "Namespaced",
		Verbs:      r.Verbs,
	}
	if len(r.Subresources) > 0 {
		resource.Subresources = make([]Subresource, len(r.Subresources))
	}
	for i, sub := range r.Subresources {
		resource.Subresources[i] = Subresource{Name: string(sub.Subresource), GVK: sub.ResponseKind.in(gv), Verbs: sub.Verbs}
	}
	return resource
}

func (k aggregatedKind) in(gv schema.GroupVersion) schema.GroupVersionKind {
	return kindIn(gv, &metav1.GroupVersionKind{Group: string(k.Group), Version: string(k.Version), Kind: string(k.Kind)})
}

// kindIn completes a kind that leaves its version, and with it its group, to where it stands.
func kindIn(gv schema.GroupVersion, kind *metav1.GroupVersionKind) schema.GroupVersionKind {
	switch {
	case kind.Kind == "":
		return schema.GroupVersionKind{}
	case kind.Version == "":
		return gv.WithKind(kind.Kind)
	default:
		return schema.GroupVersionKind(*kind)
	}
}
