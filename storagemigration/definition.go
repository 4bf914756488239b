package storagemigration

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// definition has the fields of a CustomResourceDefinition that a migration reads.
type definition struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
			Kind   string `json:"kind"`
		} `json:"names"`
		Scope      string `json:"scope"`
		Conversion struct {
			Strategy string `json:"strategy"`
		} `json:"conversion"`
		Versions []struct {
			Name    string `json:"name"`
			Served  bool   `json:"served"`
			Storage bool   `json:"storage"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		StoredVersions []string    `json:"storedVersions"`
		Conditions     []condition `json:"conditions"`
	} `json:"status"`
}

type condition struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

func (m *migration) read(ctx context.Context) (*definition, error) {
	obj, err := m.definitions.Get(ctx, m.name, nil)
	if err != nil {
		return nil, err
	}
	return unstructured.As[definition](obj)
}

// storage returns the storage version.
func (d *definition) storage() string {
	for _, v := range d.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// outdated returns the versions, besides the storage version, in which objects may be stored.
func (d *definition) outdated() []string {
	var versions []string
	for _, v := range d.Status.StoredVersions {
		if v != d.storage() {
			versions = append(versions, v)
		}
	}
	return versions
}

// mayBeOutdated reports whether objects may be stored in an outdated version. Kubernetes 1.36 and 1.37 prune status.storedVersions even
// if the last StorageVersionMigration has failed.
func (d *definition) mayBeOutdated() bool {
	return len(d.outdated()) > 0 || slices.ContainsFunc(d.Status.Conditions, func(c condition) bool {
		return c.Type == "StorageMigrating" && c.Reason == "MigrationFailed"
	})
}

// served returns the served versions, the storage version first.
func (d *definition) served() []string {
	var names []string
	for _, v := range d.Spec.Versions {
		switch {
		case v.Served && v.Storage:
			names = slices.Insert(names, 0, v.Name)
		case v.Served:
			names = append(names, v.Name)
		}
	}
	return names
}

// objects returns a handle on the metadata of all objects. It needs no discovery, which may lag.
func (d *definition) objects(client *dynamic.Client) (*dynamic.Resource, error) {
	served := d.served()
	if len(served) == 0 {
		return nil, errors.New("the definition serves no version (serve its storage version)")
	}
	version := schema.GroupVersion{Group: d.Spec.Group, Version: served[0]}
	resource := client.ForAPIResource(&discovery.Resource{
		GVR: version.WithResource(d.Spec.Names.Plural), GVK: version.WithKind(d.Spec.Names.Kind), Namespaced: d.Spec.Scope == "Namespaced",
	})
	return resource.AllNamespaces().Metadata(), nil
}

// maxClockSkew is the maximum difference between the clocks of this process and of an API server.
const maxClockSkew = time.Hour

// propagation returns the time from the read of the definition until all API servers have observed the last write of its spec. now is
// compared with a server's clock, so that the age of a write is known only within maxClockSkew.
func (d *definition) propagation(now time.Time) time.Duration {
	written := d.Metadata.CreationTimestamp.Time
	for _, entry := range d.Metadata.ManagedFields {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(written) {
			written = entry.Time.Time
		}
	}
	if now.Sub(written) > maxClockSkew {
		return 0
	}
	return propagationDelay
}

// setStoredVersions sets status.storedVersions, unless the definition has changed since def was read.
func (m *migration) setStoredVersions(ctx context.Context, def *definition, versions []string) (isCurrent bool, err error) {
	err = dynamic.RetryOnConflict(ctx, func(ctx context.Context) error {
		obj, err := m.definitions.Get(ctx, m.name, nil)
		if err != nil {
			return err
		}
		stored, _, err := unstructured.Get[[]string](obj, "status", "storedVersions")
		if err != nil {
			return err
		}
		isCurrent = obj.GetUID() == def.Metadata.UID && obj.GetGeneration() == def.Metadata.Generation
		if !isCurrent || slices.Equal(stored, versions) {
			return nil
		}
		if err := unstructured.Set(obj, versions, "status", "storedVersions"); err != nil {
			return err
		}
		_, err = m.definitions.Subresource("status").Update(ctx, obj, nil)
		return err
	})
	return isCurrent, err
}
