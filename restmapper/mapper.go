package restmapper

import (
	"context"
	"sync/atomic"

	"github.com/anykind/anykind/discovery"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Mapping is a resource as the server describes it. It is shared and must not be changed.
type Mapping = discovery.Resource

// Mapper resolves names against what the server serves. A name that the latest snapshot lacks is looked for once more
// in a fresh one, so a CustomResourceDefinition created after start-up is found when it is first asked for. Mapper is
// safe for concurrent use.
type Mapper struct {
	discovery *discovery.Client
	latest    atomic.Pointer[catalog]
}

// New makes a mapper over a discovery client.
func New(client *discovery.Client) *Mapper { return &Mapper{discovery: client} }

// Resource resolves a name as a user types it: deployments, deployment, deploy, Deployment, deployments.apps,
// deployments.v1.apps, Deployment.v1.apps. Plurals, singulars and short names are taken in any case, kinds in their
// own. Plurals, singulars and kinds win over short names; the core group wins over others; within a group the
// server's preferred version wins. A name that still means several resources is an [*AmbiguousError], one that means
// none a [*NoMatchError].
func (m *Mapper) Resource(ctx context.Context, name string) (*Mapping, error) {
	return m.find(ctx, func(c *catalog) (*Mapping, error) { return c.resource(name) })
}

// Kind resolves a kind. Its version may be "": then the server's preferred version that has the kind is taken.
// Errors are those of [Mapper.Resource].
func (m *Mapper) Kind(ctx context.Context, gvk schema.GroupVersionKind) (*Mapping, error) {
	return m.find(ctx, func(c *catalog) (*Mapping, error) { return c.kind(gvk) })
}

// find looks in the latest catalog, and in a fresh one where that has no match.
func (m *Mapper) find(ctx context.Context, look func(*catalog) (*Mapping, error)) (*Mapping, error) {
	snapshot, err := m.discovery.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	mapping, err := look(m.catalog(snapshot))
	if !isNoMatch(err) {
		return mapping, err
	}
	snapshot, refreshErr := m.discovery.Refresh(ctx)
	if refreshErr != nil {
		return nil, refreshErr
	}
	return look(m.catalog(snapshot))
}

// catalog indexes the snapshot, once for all who look at the same one.
func (m *Mapper) catalog(snapshot *discovery.Snapshot) *catalog {
	if latest := m.latest.Load(); latest != nil && latest.snapshot == snapshot {
		return latest
	}
	indexed := newCatalog(snapshot)
	m.latest.Store(indexed)
	return indexed
}
