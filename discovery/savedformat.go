package discovery

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The types of a saved snapshot's file. They stand apart from Snapshot's, so that a change there is no change of the
// format by accident.

type savedHead struct {
	Kind     string `json:"kind"`
	Format   int    `json:"format"`
	Checksum string `json:"checksum"`
}

type savedSnapshot struct {
	savedHead
	Taken      time.Time      `json:"taken"`
	Aggregated bool           `json:"aggregated"`
	Groups     []savedGroup   `json:"groups"`
	Removed    []savedRemoved `json:"removed,omitempty"`
	Rejected   []string       `json:"rejected,omitempty"`
}

type savedGroup struct {
	Name     string         `json:"name"`
	Versions []savedVersion `json:"versions"`
}

type savedVersion struct {
	Name      string          `json:"name"`
	Stale     bool            `json:"stale,omitempty"`
	Error     string          `json:"error,omitempty"`
	Resources []savedResource `json:"resources"`
}

type savedResource struct {
	Name string `json:"name"`
	savedObjects
	Singular           string             `json:"singular,omitempty"`
	ShortNames         []string           `json:"shortNames,omitempty"`
	Categories         []string           `json:"categories,omitempty"`
	Namespaced         bool               `json:"namespaced"`
	Verbs              []string           `json:"verbs,omitempty"`
	StorageVersionHash string             `json:"storageVersionHash,omitempty"`
	Subresources       []savedSubresource `json:"subresources,omitempty"`
}

type savedSubresource struct {
	Name string `json:"name"`
	savedObjects
	Verbs []string `json:"verbs,omitempty"`
}

// savedObjects is a kind; its group and version are left out where they are those of the version that it stands in.
type savedObjects struct {
	Kind    string `json:"kind,omitempty"`
	Group   string `json:"group,omitempty"`
	Version string `json:"version,omitempty"`
}

type savedRemoved struct {
	Noticed  time.Time     `json:"noticed"`
	Group    string        `json:"group"`
	Version  string        `json:"version"`
	Resource savedResource `json:"resource"`
}

func savedOf(s *Snapshot) *savedSnapshot {
	saved := &savedSnapshot{
		savedHead: savedHead{Kind: savedKind, Format: savedFormat},
		Taken:     s.Taken.UTC(), Aggregated: s.Aggregated, Groups: []savedGroup{},
	}
	for _, group := range s.Groups {
		item := savedGroup{Name: group.Name, Versions: []savedVersion{}}
		for _, v := range group.Versions {
			version := savedVersion{Name: v.Name, Stale: v.Stale, Resources: []savedResource{}}
			if v.Err != nil {
				version.Error = v.Err.Error()
			}
			for _, r := range v.Resources {
				version.Resources = append(version.Resources, savedResourceOf(r))
			}
			item.Versions = append(item.Versions, version)
		}
		saved.Groups = append(saved.Groups, item)
	}
	for _, removed := range s.Removed {
		saved.Removed = append(saved.Removed, savedRemoved{
			Noticed: removed.Noticed.UTC(), Group: removed.Resource.GVR.Group, Version: removed.Resource.GVR.Version,
			Resource: savedResourceOf(removed.Resource),
		})
	}
	for _, err := range s.Rejected {
		saved.Rejected = append(saved.Rejected, err.Error())
	}
	return saved
}

func savedResourceOf(r *Resource) savedResource {
	gv := r.GVR.GroupVersion()
	saved := savedResource{
		Name: r.GVR.Resource, savedObjects: savedObjectsOf(gv, r.GVK), Singular: r.Singular, ShortNames: r.ShortNames,
		Categories: r.Categories, Namespaced: r.Namespaced, Verbs: r.Verbs, StorageVersionHash: r.StorageVersionHash,
	}
	for _, sub := range r.Subresources {
		saved.Subresources = append(saved.Subresources, savedSubresource{sub.Name, savedObjectsOf(gv, sub.GVK), sub.Verbs})
	}
	return saved
}

func savedObjectsOf(gv schema.GroupVersion, kind schema.GroupVersionKind) savedObjects {
	if kind.GroupVersion() == gv {
		return savedObjects{Kind: kind.Kind}
	}
	return savedObjects{Kind: kind.Kind, Group: kind.Group, Version: kind.Version}
}

func (s *savedSnapshot) snapshot() *Snapshot {
	snapshot := &Snapshot{Taken: s.Taken, Aggregated: s.Aggregated}
	for _, g := range s.Groups {
		group := Group{Name: g.Name}
		for _, v := range g.Versions {
			version := Version{Name: v.Name, Stale: v.Stale}
			if v.Error != "" {
				version.Err = errors.New(v.Error)
			}
			gv := schema.GroupVersion{Group: g.Name, Version: v.Name}
			for i := range v.Resources {
				version.Resources = append(version.Resources, v.Resources[i].resource(gv))
			}
			group.Versions = append(group.Versions, version)
		}
		snapshot.Groups = append(snapshot.Groups, group)
	}
	for _, removed := range s.Removed {
		resource := removed.Resource.resource(schema.GroupVersion{Group: removed.Group, Version: removed.Version})
		snapshot.Removed = append(snapshot.Removed, Removed{Resource: resource, Noticed: removed.Noticed})
	}
	for _, text := range s.Rejected {
		snapshot.Rejected = append(snapshot.Rejected, errors.New(text))
	}
	return snapshot
}

func (r *savedResource) resource(gv schema.GroupVersion) *Resource {
	resource := &Resource{
		GVR: gv.WithResource(r.Name), GVK: r.in(gv), Singular: r.Singular, ShortNames: r.ShortNames,
		Categories: r.Categories, Namespaced: r.Namespaced, Verbs: r.Verbs, StorageVersionHash: r.StorageVersionHash,
	}
	for _, sub := range r.Subresources {
		resource.Subresources = append(resource.Subresources, Subresource{Name: sub.Name, GVK: sub.in(gv), Verbs: sub.Verbs})
	}
	return resource
}

func (o savedObjects) in(gv schema.GroupVersion) schema.GroupVersionKind {
	return kindIn(gv, &metav1.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind})
}
