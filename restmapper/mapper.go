package restmapper

import (
	"cmp"
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

// find looks the query up in the latest snapshot. It searches if the snapshot is not fresh or lacks the query. An ambiguous name is
// looked up in a new snapshot, too: resources with the name may have been deleted.
func find[T any](ctx context.Context, m *Mapper, q query, lookup func(*index, query) (T, error)) (T, error) {
	if snapshot := m.discovery.Latest(); snapshot != nil && m.discovery.Fresh() {
		x := m.index(snapshot)
		found, err := lookup(x, q)
		if !errors.Is(err, errNoMatch) {
			return settle(ctx, m, q, x, lookup, found, err)
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
	return settle(ctx, m, q, x, lookup, found, err)
}

// settle returns the result of a lookup. After an [*AmbiguousError] it looks the query up in a new snapshot, unless it did so a moment
// ago. If that fails, the error stays.
func settle[T any](ctx context.Context, m *Mapper, q query, x *index, lookup func(*index, query) (T, error), found T, err error) (T, error) {
	if _, ok := errors.AsType[*AmbiguousError](err); !ok || m.misses.get(&q, x, time.Now()) != nil {
		return found, err
	}
	snapshot, refreshErr := m.discovery.Refresh(ctx)
	if refreshErr != nil {
		return found, err
	}
	x = m.index(snapshot)
	if found, err = lookup(x, q); errors.Is(err, errNoMatch) {
		err = x.noMatch(&q)
	}
	if err != nil {
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

// interpretation is a possible meaning of a typed name.
type interpretation struct {
	name, version, group string
	hasGroup             bool // a group was typed; "" is the core group if hasGroup, and otherwise any group
	isKind               bool // the name is a kind only, case-sensitive
	groupIsPrefix        bool // the group may be abbreviated, as in storageclasses.storage
}

// query is the name of a lookup. It is passed by value and has no pointers to the stack, to avoid allocations.
type query struct {
	// text is the name as typed. It is "" for a kind or resource of a RESTMapper: their text is made only for errors.
	text string
	// interpretations has count meanings of the text, in kubectl's order.
	interpretations [2]interpretation
	count           int
	// versions are the acceptable versions if the caller named several.
	versions []string
}

// parseName parses a.b.c as resource a, version b and group c, or else as resource a and group b.c.
func parseName(text string) query {
	q := query{text: text, count: 1}
	name, rest, hasGroup := strings.Cut(text, ".")
	if version, group, ok := strings.Cut(rest, "."); ok {
		q.interpretations[0] = interpretation{name: name, version: version, group: group, hasGroup: true}
		q.count = 2
	}
	q.interpretations[q.count-1] = interpretation{name: name, group: rest, hasGroup: hasGroup}
	return q
}

// kindQuery queries a kind of a group; its version may be "".
func kindQuery(gvk schema.GroupVersionKind) query {
	return query{count: 1, interpretations: [2]interpretation{{
		name: gvk.Kind, version: gvk.Version, group: gvk.Group, hasGroup: true, isKind: true,
	}}}
}

func (q *query) all() []interpretation { return q.interpretations[:q.count] }

// isBare reports whether only a name was typed.
func (q *query) isBare() bool { return q.count == 1 && !q.interpretations[0].hasGroup }

func (q *query) acceptsVersion(version string) bool {
	return len(q.versions) == 0 || slices.Contains(q.versions, version)
}

// mayBeInGroup reports whether the typed group, possibly abbreviated, matches the group.
func (q *query) mayBeInGroup(group string) bool {
	return slices.ContainsFunc(q.all(), func(in interpretation) bool { return !in.hasGroup || in.mayBeInGroup(group) })
}

// String returns the text as typed, or a typical form: Deployment.v1.apps, Pod.v1, Deployment.apps.
func (q *query) String() string {
	if q.text != "" {
		return q.text
	}
	in := q.interpretations[0]
	version := cmp.Or(in.version, strings.Join(q.versions, "|"))
	parts := slices.DeleteFunc([]string{in.name, version, in.group}, func(part string) bool { return part == "" })
	return strings.Join(parts, ".")
}

// admits reports whether a resource with the name also has the group, the version and the exact kind.
func (in *interpretation) admits(r *discovery.Resource) bool {
	return (!in.hasGroup || in.inGroup(r.GVR.Group)) && (in.version == "" || r.GVR.Version == in.version) && (!in.isKind || r.GVK.Kind == in.name)
}

func (in *interpretation) inGroup(group string) bool {
	if in.groupIsPrefix {
		return in.group != "" && strings.HasPrefix(group, in.group)
	}
	return group == in.group
}

// mayBeInGroup is like inGroup, but accepts an abbreviated group unless the query is for a kind or has a version.
func (in *interpretation) mayBeInGroup(group string) bool {
	prefix := interpretation{group: in.group, groupIsPrefix: in.version == "" && !in.isKind}
	return in.inGroup(group) || prefix.inGroup(group)
}

// isNameOf reports whether a resource has the name, in any case, and is admitted.
func (in *interpretation) isNameOf(r *discovery.Resource) bool {
	isName := func(name string) bool { return strings.EqualFold(name, in.name) }
	return in.admits(r) &&
		(isName(r.GVR.Resource) || isName(singular(r)) || isName(r.GVK.Kind) || slices.ContainsFunc(r.ShortNames, isName))
}
