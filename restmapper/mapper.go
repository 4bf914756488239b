package restmapper

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
)

// Mapper resolves names to the resources of a discovery client. A name missing in the latest snapshot is searched by
// [discovery.Client.Search]. A CustomResourceDefinition created after start-up is therefore found by the first lookup, even if it
// is Established and not served yet. The delay between searches for a missing name grows from 50 milliseconds to 1 second, but
// any later snapshot with the name is used at once. For a stale or unreadable group version, its last known resources are
// returned. Results are shared and must not be changed. A Mapper is safe for concurrent use.
type Mapper struct {
	discovery *discovery.Client
	latest    atomic.Pointer[index]
	// indexing is held while an index is made: concurrent callers share the index.
	indexing sync.Mutex
	misses   missCache
}

// New returns a mapper of a discovery client.
func New(client *discovery.Client) *Mapper { return &Mapper{discovery: client} }

// Resource resolves a name as users type it: deployments, deployment, deploy, Deployment, deployments.apps, deployments.v1.apps,
// Deployment.v1.apps. Plurals, singulars and short names match in any case. A kind in its exact case wins over a lower-case kind.
// Plurals, singulars and kinds win over short names, the core group wins over named groups, and the server's preferred version
// wins within a group. A group without an exact match is treated as a prefix, as in storageclasses.storage.
//
// The error is a [*NoMatchError] for an unknown name, an [*AmbiguousError] for several resources (kubectl takes the first), and
// an [*UnavailableError] if discovery fails now.
func (m *Mapper) Resource(ctx context.Context, name string) (*discovery.Resource, error) {
	return find(ctx, m, parseName(name), (*index).resolve)
}

// Kind resolves a kind. An empty version means the server's preferred version with the kind. Errors are as for [Mapper.Resource].
func (m *Mapper) Kind(ctx context.Context, gvk schema.GroupVersionKind) (*discovery.Resource, error) {
	return find(ctx, m, kindQuery(gvk), (*index).resolve)
}

// Resources resolves a comma-separated list of names and categories, such as all, as typed after kubectl get. As in kubectl, a
// category wins over a resource of the same name. It stands for its served resources in their preferred versions. Duplicates are
// omitted. The first name with an error ends the call with the error of [Mapper.Resource].
func (m *Mapper) Resources(ctx context.Context, list string) ([]*discovery.Resource, error) {
	var all []*discovery.Resource
	for name := range strings.SplitSeq(list, ",") {
		found, err := find(ctx, m, parseName(name), (*index).resolveList)
		if err != nil {
			return nil, err
		}
		for _, resource := range found {
			if !slices.Contains(all, resource) {
				all = append(all, resource)
			}
		}
	}
	return all, nil
}

// errNoMatch reports that an index lacks the query. [index.noMatch] makes the caller's error after a search.
var errNoMatch = errors.New("no match")

// find looks the query up in the latest snapshot. It searches if the snapshot is not fresh or lacks the query.
func find[T any](ctx context.Context, m *Mapper, q query, lookup func(*index, query) (T, error)) (T, error) {
	if snapshot := m.discovery.Latest(); snapshot != nil && m.discovery.Fresh() {
		x := m.index(snapshot)
		found, err := lookup(x, q)
		if !errors.Is(err, errNoMatch) {
			return found, err
		}
		if err := m.misses.get(&q, x, time.Now()); err != nil {
			return found, err
		}
	}
	return search(ctx, m, q, lookup)
}

func search[T any](ctx context.Context, m *Mapper, q query, lookup func(*index, query) (T, error)) (found T, err error) {
	snapshot, searchErr := m.discovery.Search(ctx, &discovery.SearchQuery{
		IsServed: func(snapshot *discovery.Snapshot) bool {
			_, err := lookup(m.index(snapshot), q)
			return !errors.Is(err, errNoMatch)
		},
		MayBeInGroup: q.mayBeInGroup,
	})
	if searchErr != nil {
		return found, &UnavailableError{Name: q.String(), Causes: []error{searchErr}}
	}
	x := m.index(snapshot)
	if found, err = lookup(x, q); errors.Is(err, errNoMatch) {
		err = x.noMatch(&q)
		m.misses.add(&q, x, err, time.Now())
	}
	return found, err
}

// index returns the index of a snapshot. It is made once for all callers.
func (m *Mapper) index(snapshot *discovery.Snapshot) *index {
	if latest := m.latest.Load(); latest != nil && latest.snapshot == snapshot {
		return latest
	}
	m.indexing.Lock()
	defer m.indexing.Unlock()
	if latest := m.latest.Load(); latest != nil && latest.snapshot == snapshot {
		return latest
	}
	made := newIndex(snapshot)
	m.latest.Store(made)
	return made
}
