package restmapper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/discovery"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Mapper resolves names to the resources of a discovery client. It searches for a name that the latest snapshot lacks as
// [discovery.Client.Search] does, so that a CustomResourceDefinition created after start-up is found when it is first
// requested, even if it is Established and not served yet. A name that is still missing causes another search only after 50
// milliseconds and then less and less often, down to once a second, but is found as soon as any later snapshot has it. A
// resource in a group version that is stale or unreadable is the last known one. Results are shared and must not be changed.
// A Mapper is safe for concurrent use.
type Mapper struct {
	discovery *discovery.Client
	latest    atomic.Pointer[index]
	// indexing is held while an index is made, so that concurrent callers share it.
	indexing sync.Mutex
	misses   missCache
}

// New returns a mapper of a discovery client.
func New(client *discovery.Client) *Mapper { return &Mapper{discovery: client} }

// Resource resolves a name as users type it: deployments, deployment, deploy, Deployment, deployments.apps,
// deployments.v1.apps, Deployment.v1.apps. Plurals, singulars and short names match in any case; a kind in its own case wins
// over them in lower case. Plurals, singulars and kinds win over short names, the core group wins over others, and in a group
// the server's preferred version wins. If no group has the typed name it may be a prefix, as in storageclasses.storage.
//
// An unknown name is a [*NoMatchError], one of several resources an [*AmbiguousError], where kubectl takes the first, and one
// that cannot be resolved now an [*UnavailableError].
func (m *Mapper) Resource(ctx context.Context, name string) (*discovery.Resource, error) {
	return find(ctx, m, parseName(name), (*index).resolve)
}

// Kind resolves a kind. If its version is "" it is the server's preferred version that has the kind. Errors are those of
// [Mapper.Resource].
func (m *Mapper) Kind(ctx context.Context, gvk schema.GroupVersionKind) (*discovery.Resource, error) {
	return find(ctx, m, kindQuery(gvk), (*index).resolve)
}

// Resources resolves a list as users type it after kubectl get: names and categories, such as all, separated by commas. Like
// in kubectl, a category wins over a resource of the same name and stands for its resources that the server serves, in the
// preferred version; duplicates are omitted. The error is that of [Mapper.Resource] for the first name that has one.
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

// ResourceAndName resolves a resource and the name of an object, as in deploy/web. Errors are those of [Mapper.Resource], and
// a plain one if there are not two parts.
func (m *Mapper) ResourceAndName(ctx context.Context, pair string) (*discovery.Resource, string, error) {
	typed, name, ok := strings.Cut(pair, "/")
	if !ok || typed == "" || name == "" || strings.Contains(name, "/") {
		return nil, "", fmt.Errorf("parse %q: not a resource and a name (such as deploy/web)", pair)
	}
	resource, err := m.Resource(ctx, typed)
	if err != nil {
		return nil, "", err
	}
	return resource, name, nil
}

// errNoMatch reports that an index lacks the query. The caller's error is made by [index.noMatch] after a search.
var errNoMatch = errors.New("no match")

// find looks a query up in the latest snapshot and, if that has no match, searches for it.
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
	snapshot, searchErr := m.discovery.Search(ctx, &discovery.Target{
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

// index returns the index of a snapshot, which is made once for all callers.
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
