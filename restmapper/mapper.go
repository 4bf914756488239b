package restmapper

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/discovery"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Mapping is a resource as the server describes it. It is shared and must not be changed.
type Mapping = discovery.Resource

// Mapper resolves names against what the server serves. A name that the latest snapshot lacks is looked for once more
// in a fresh one, so a CustomResourceDefinition created after start-up is found when it is first asked for. A name that
// the fresh one lacks, too, asks the server again only after a second, but is found as soon as any later snapshot has
// it. What is found in a group version that is stale or cannot be read is its last known mapping. Mapper is safe for
// concurrent use.
type Mapper struct {
	discovery *discovery.Client
	latest    atomic.Pointer[catalog]
	// indexing is held by whoever makes a catalog, so that many who wait for one share it.
	indexing sync.Mutex
	misses   misses
	now      func() time.Time
}

// New makes a mapper over a discovery client.
func New(client *discovery.Client) *Mapper { return &Mapper{discovery: client, now: time.Now} }

// Resource resolves a name as a user types it: deployments, deployment, deploy, Deployment, deployments.apps,
// deployments.v1.apps, Deployment.v1.apps. Plurals, singulars and short names are taken in any case; a kind in its own
// case wins over them in lower case. Plurals, singulars and kinds win over short names; the core group wins over
// others; within a group the server's preferred version wins. Where no group has the typed name it may be the beginning
// of one, as in storageclasses.storage.
//
// A name that means none is a [*NoMatchError]. One that still means several resources is an [*AmbiguousError], where
// kubectl takes the first. One that cannot be told now is an [*UnavailableError].
func (m *Mapper) Resource(ctx context.Context, name string) (*Mapping, error) {
	return find(ctx, m, named(name), (*catalog).one)
}

// Kind resolves a kind. Its version may be "": then the server's preferred version that has the kind is taken.
// Errors are those of [Mapper.Resource].
func (m *Mapper) Kind(ctx context.Context, gvk schema.GroupVersionKind) (*Mapping, error) {
	return find(ctx, m, ofKind(gvk), (*catalog).one)
}

// find looks in the latest catalog, and in a fresh one where that has no match.
func find[T any](ctx context.Context, m *Mapper, q query, look func(*catalog, query) (T, error)) (T, error) {
	var called time.Time
	if m.latest.Load() == nil {
		called = time.Now()
	}
	snapshot, err := m.discovery.Snapshot(ctx)
	if err != nil {
		var none T
		return none, &UnavailableError{Name: q.String(), Causes: []error{err}}
	}
	found, err := look(m.catalog(snapshot), q)
	if !errors.Is(err, errMissing) {
		return found, err
	}
	if called.IsZero() || !snapshot.Taken.After(called) {
		return findAgain(ctx, m, q, snapshot, look)
	}
	// The first question was asked of this very snapshot: another would say the same.
	return found, m.missed(&q, m.catalog(snapshot))
}

// findAgain asks the server anew, unless it lacked the same name a moment ago.
func findAgain[T any](ctx context.Context, m *Mapper, q query, snapshot *discovery.Snapshot, look func(*catalog, query) (T, error)) (T, error) {
	var none T
	known, recent := m.misses.recall(&q, snapshot, m.now())
	switch {
	case recent != nil:
		return none, recent
	case known:
		return none, m.missed(&q, m.catalog(snapshot))
	}
	snapshot, err := m.discovery.Refresh(ctx)
	if err != nil {
		return none, &UnavailableError{Name: q.String(), Causes: []error{err}}
	}
	fresh := m.catalog(snapshot)
	found, err := look(fresh, q)
	if errors.Is(err, errMissing) {
		return none, m.missed(&q, fresh)
	}
	return found, err
}

// missed says what is known about a name that is missing, and remembers that.
func (m *Mapper) missed(q *query, c *catalog) error {
	err := c.missing(q)
	m.misses.note(q, c.snapshot, err, m.now())
	return err
}

// catalog indexes the snapshot, once for all who look at the same one.
func (m *Mapper) catalog(snapshot *discovery.Snapshot) *catalog {
	if latest := m.latest.Load(); latest != nil && latest.snapshot == snapshot {
		return latest
	}
	m.indexing.Lock()
	defer m.indexing.Unlock()
	if latest := m.latest.Load(); latest != nil && latest.snapshot == snapshot {
		return latest
	}
	indexed := newCatalog(snapshot)
	m.latest.Store(indexed)
	return indexed
}
