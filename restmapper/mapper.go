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
// as [discovery.Client.Search] does, so a CustomResourceDefinition created after start-up is found when it is first asked
// for, also if it is Established and not served yet. A name that is still missing asks the server again only after 50
// milliseconds and, as long as it is missing, less and less often up to once a second, but is found as soon as any later
// snapshot has it. What is found in a group version that is stale or cannot be read is its last known mapping. Mapper is
// safe for concurrent use.
type Mapper struct {
	discovery *discovery.Client
	latest    atomic.Pointer[catalog]
	// indexing is held by whoever makes a catalog, so that many who wait for one share it. It guards catalogs.
	indexing sync.Mutex
	catalogs uint64 // made so far
	misses   misses
}

// New makes a mapper over a discovery client.
func New(client *discovery.Client) *Mapper { return &Mapper{discovery: client} }

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
	snapshot := m.discovery.Latest()
	if snapshot != nil {
		found, err := look(m.catalog(snapshot), q)
		if !errors.Is(err, errMissing) {
			return found, err
		}
		if err := m.recall(&q, snapshot); err != nil {
			return found, err
		}
	}
	return search(ctx, m, q, look)
}

// search asks the server.
func search[T any](ctx context.Context, m *Mapper, q query, look func(*catalog, query) (T, error)) (T, error) {
	var found T
	var err error
	snapshot, failed := m.discovery.Search(ctx, &discovery.Target{
		Found: func(snapshot *discovery.Snapshot) bool {
			found, err = look(m.catalog(snapshot), q)
			return !errors.Is(err, errMissing)
		},
		InGroup: q.mayBeIn,
	})
	if failed != nil {
		var none T
		return none, &UnavailableError{Name: q.String(), Causes: []error{failed}}
	}
	if found, err = look(m.catalog(snapshot), q); errors.Is(err, errMissing) {
		err = m.catalog(snapshot).missing(&q)
		m.misses.note(&q, m.catalog(snapshot).number, err, time.Now())
	}
	return found, err
}

// recall returns what is known about a name that was missing a moment ago; nil if the server is to be asked.
func (m *Mapper) recall(q *query, snapshot *discovery.Snapshot) error {
	c := m.catalog(snapshot)
	known, err := m.misses.recall(q, c.number, time.Now())
	if !known || err != nil {
		return err
	}
	err = c.missing(q)
	m.misses.update(q, c.number, err)
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
	m.catalogs++
	indexed.number = m.catalogs
	m.latest.Store(indexed)
	return indexed
}
