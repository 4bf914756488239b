package discovery

import (
	"bytes"
	"errors"
	"fmt"

	jsoniter "github.com/json-iterator/go"
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

// decodeAggregated reads the groups of an aggregated answer. What is wrong in one of them alone is an error of its version
// or, where that has no name, among those that are rejected.
func decodeAggregated(body []byte) (groups []Group, rejected []error, err error) {
	var list aggregatedList
	if err := unmarshalRepetitive(body, &list); err != nil {
		return decodeItems(body, err)
	}
	if err := checkKind(list.Kind, "APIGroupDiscoveryList"); err != nil {
		return nil, nil, err
	}
	if list.Items == nil && !bytes.Contains(body, []byte(`"items"`)) { // it may be null
		return nil, nil, errors.New("the answer is no APIGroupDiscoveryList: it has no items")
	}
	groups = make([]Group, 0, len(list.Items))
	for i := range list.Items {
		item := &list.Items[i]
		group := Group{Name: item.Metadata.Name, Versions: make([]Version, 0, len(item.Versions))}
		for v := range item.Versions {
			group.Versions = append(group.Versions, item.Versions[v].version(group.Name))
		}
		groups = append(groups, group)
	}
	return groups, nil, nil
}

// decodeItems reads a list that cannot be read as a whole, because of whole, item by item.
func decodeItems(body []byte, whole error) (groups []Group, rejected []error, err error) {
	var list struct {
		Kind  string                `json:"kind"`
		Items []jsoniter.RawMessage `json:"items"`
	}
	if codec.Unmarshal(body, &list) != nil || list.Kind != "APIGroupDiscoveryList" {
		return nil, nil, fmt.Errorf("the answer is no APIGroupDiscoveryList: %w", decodeError(whole))
	}
	for _, item := range list.Items {
		group, some := decodeItem(item)
		rejected = append(rejected, some...)
		if group != nil {
			groups = append(groups, *group)
		}
	}
	return groups, rejected, nil
}

func decodeItem(item []byte) (group *Group, rejected []error) {
	var head struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Versions []jsoniter.RawMessage `json:"versions"`
	}
	if err := codec.Unmarshal(item, &head); err != nil {
		return nil, []error{fmt.Errorf("group %s: %w", quoted(head.Metadata.Name), decodeError(err))}
	}
	group = &Group{Name: head.Metadata.Name}
	for _, document := range head.Versions {
		var version aggregatedVersion
		err := unmarshalRepetitive(document, &version)
		if err == nil {
			group.Versions = append(group.Versions, version.version(group.Name))
			continue
		}
		var named struct {
			Version string `json:"version"`
		}
		if codec.Unmarshal(document, &named) != nil {
			rejected = append(rejected, fmt.Errorf("group %s: %w", quoted(group.Name), decodeError(err)))
			continue
		}
		group.Versions = append(group.Versions, Version{Name: named.Version, Err: decodeError(err)})
	}
	return group, rejected
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
	if err := validateResources(version.Resources); err != nil {
		version.Resources, version.Err = nil, err
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
