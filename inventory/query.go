package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

// Query selects objects of a [Cache]. nil and zero values select all objects. An object must satisfy all set fields.
type Query struct {
	// Select reports whether to search a resource. nil selects all resources.
	Select          func(*discovery.Resource) bool
	Namespace, Name string
	UID             types.UID
	// LabelSelector is in the form of metav1.ListOptions.
	LabelSelector string
	// FieldSelector is in the form of metav1.ListOptions, for any field with a string, number or bool. Its names are paths of
	// [unstructured.ParsePath]: "spec.nodeName=a,status.phase!=Running". A missing field equals "".
	FieldSelector string
	// Owner selects the objects with an owner of this UID, with Descendants also the objects owned by these, and so on.
	Owner       types.UID
	Descendants bool
	// Roots selects objects without owners.
	Roots bool
	// Readiness selects objects by their status. It is an error in a cache of metadata.
	Readiness readiness.Status
	// Text selects objects with a string value that contains Text, regardless of case. Names of fields are not searched.
	Text string
	// Limit is the maximum number of objects in a page. 0 means no limit.
	Limit int
	// Continue is Page.Continue of the previous page of the same query.
	Continue string
}

// Page is a page of the result of a query.
type Page struct {
	// Entries are ordered by group, resource, namespace and name.
	Entries []Entry
	// Continue is the token of the next page, "" on the last page. A page begins after the last object of the previous page, also if
	// objects have changed meanwhile.
	Continue string
	// ResourceVersions has an element for each searched resource, in the order of Entries. The page is based on all changes up to
	// these resourceVersions, and possibly on later changes.
	ResourceVersions []ResourceVersion
}

// ResourceVersion is the resourceVersion of the collection of a resource. It is "" before the initial list.
type ResourceVersion struct {
	Resource *discovery.Resource
	Version  string
}

// searchedKind is a kind with the kinds that may have the same objects, such as Events of two groups. These include the kind.
type searchedKind struct {
	*kind
	resource *discovery.Resource
	order    int             // of results
	same     []*searchedKind // with the same name, in the server's order
}

// searchedKinds are all kinds in the order of results.
type searchedKinds struct {
	ordered []*searchedKind
	byCache map[*cache.Cache[unstructured.Lazy]]*searchedKind
}

func (v *View) searchedKinds() *searchedKinds {
	v.cache.mu.RLock()
	defer v.cache.mu.RUnlock()
	return v.cache.searched
}

// newSearchedKinds orders kinds. Their owner's lock must be held.
func newSearchedKinds(kinds map[schema.GroupResource]*kind) *searchedKinds {
	byName := map[string][]*searchedKind{}
	all := &searchedKinds{byCache: make(map[*cache.Cache[unstructured.Lazy]]*searchedKind, len(kinds))}
	for _, k := range kinds {
		searched := &searchedKind{kind: k, resource: k.resource}
		name := k.resource.GVK.Kind
		byName[name] = append(byName[name], searched)
		all.ordered = append(all.ordered, searched)
		all.byCache[k.cache] = searched
	}
	for _, same := range byName {
		slices.SortFunc(same, func(a, b *searchedKind) int { return cmp.Compare(a.rank, b.rank) })
	}
	slices.SortFunc(all.ordered, func(a, b *searchedKind) int {
		return a.position(types.NamespacedName{}).compare(b.position(types.NamespacedName{}))
	})
	for i, k := range all.ordered {
		k.order = i
		k.same = byName[k.resource.GVK.Kind]
	}
	return all
}

// sameObjects returns the searched kinds that may have the objects of a kind, or nil if the kind is not searched yet.
func (all *searchedKinds) sameObjects(k *kind) []*searchedKind {
	if searched := all.byCache[k.cache]; searched != nil {
		return searched.same
	}
	return nil
}

func (k *searchedKind) position(key types.NamespacedName) position {
	return position{k.resource.GVR.Group, k.resource.GVR.Resource, key.Namespace, key.Name}
}

// search is a call of Query.
type search struct {
	Query

	view   *View
	kinds  *searchedKinds
	labels labels.Selector
	fields []fieldRequirement
	after  position
	page   Page
}

// Query returns the selected objects of the view. Objects of two resources with the same kind and UID are returned once, see [List]. The
// query of a cache sends no request. Objects are unpacked for FieldSelector and Text only, and unschedulable Pods for Readiness. ctx ends a
// long search.
func (v *View) Query(ctx context.Context, q *Query) (*Page, error) {
	s, err := v.newSearch(q)
	switch {
	case err != nil:
		return nil, err
	case s.Owner != "":
		err = s.searchOwned(ctx)
	default:
		err = s.searchAll(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &s.page, nil
}

// newSearch returns a search, or the error of an invalid query.
func (v *View) newSearch(q *Query) (s *search, err error) {
	s = &search{Query: *cmp.Or(q, &Query{}), view: v, kinds: v.searchedKinds()}
	if s.labels, err = labels.Parse(s.LabelSelector); err != nil {
		return nil, fmt.Errorf("query all kinds: label selector: %w", err)
	}
	if s.fields, err = parseFieldSelector(s.FieldSelector); err != nil {
		return nil, fmt.Errorf("query all kinds: field selector: %w", err)
	}
	if s.after, err = parseToken(s.Continue); err != nil {
		return nil, err
	}
	switch {
	case s.Readiness != "" && v.cache.opts.Metadata:
		return nil, errors.New("query all kinds: the cache has metadata only, without readiness")
	case s.Descendants && s.Owner == "":
		return nil, errors.New("query all kinds: Descendants without an Owner")
	}
	return s, nil
}

// find returns an object if the query without Descendants, Limit and Continue selects it.
func (s *search) find(ctx context.Context, k *searchedKind, key types.NamespacedName) (e Entry, isSelected bool, err error) {
	if s.Select != nil && !s.Select(k.resource) {
		return Entry{}, false, nil
	}
	found, exists := k.cache.Entry(key.Namespace, key.Name)
	e = s.view.entry(k, found)
	if !exists || s.Owner != "" && !slices.Contains(e.Owners(), s.Owner) || !s.matchesMetadata(e) {
		return Entry{}, false, nil
	}
	isSelected, err = s.selects(ctx, e)
	return e, isSelected, err
}

// isSearched reports whether a kind may have results, and notes its resourceVersion. It is called before the objects are read.
func (s *search) isSearched(ctx context.Context, k *searchedKind) (bool, error) {
	if s.Select != nil && !s.Select(k.resource) || s.Continue != "" && k.position(types.NamespacedName{}).compare(position{Group: s.after.Group, Resource: s.after.Resource}) < 0 {
		return false, nil
	}
	if !k.resource.Namespaced {
		if isAllowed, err := s.view.permissions.allows(ctx, k.resource, ""); err != nil || !isAllowed {
			return false, err
		}
	}
	s.page.ResourceVersions = append(s.page.ResourceVersions, ResourceVersion{k.resource, k.resourceVersion()})
	return true, nil
}

// searchAll searches one kind after the next, until the page is full.
func (s *search) searchAll(ctx context.Context) error {
	for _, k := range s.kinds.ordered {
		isSearched, err := s.isSearched(ctx, k)
		if err != nil {
			return err
		}
		if !isSearched {
			continue
		}
		var entries []Entry
		for e := range k.cache.All(s.Namespace, s.labels) {
			if entry := s.view.entry(k, e); s.isAfter(entry) && s.matchesMetadata(entry) {
				entries = append(entries, entry)
			}
		}
		if isFull, err := s.add(ctx, entries); err != nil || isFull {
			return err
		}
	}
	return nil
}

// searchOwned searches the objects below Owner.
func (s *search) searchOwned(ctx context.Context) error {
	isSearched := make([]bool, len(s.kinds.ordered))
	s.page.ResourceVersions = make([]ResourceVersion, 0, len(s.kinds.ordered))
	for i, k := range s.kinds.ordered {
		var err error
		if isSearched[i], err = s.isSearched(ctx, k); err != nil {
			return err
		}
	}
	var entries []Entry
	var err error
	if s.Descendants {
		entries, err = s.view.descendants(ctx, s.kinds, s.Owner)
	} else {
		entries, err = s.view.appendOwned(ctx, nil, s.kinds, s.Owner, func(Entry) bool { return true })
	}
	if err != nil {
		return err
	}
	_, err = s.add(ctx, slices.DeleteFunc(entries, func(e Entry) bool { return !isSearched[e.kind.order] || !s.isAfter(e) || !s.matchesMetadata(e) }))
	return err
}

// add adds the entries that the whole query selects. It reports whether the page is full.
func (s *search) add(ctx context.Context, entries []Entry) (isFull bool, err error) {
	s.page.Entries = slices.Grow(s.page.Entries, min(len(entries), cmp.Or(max(s.Limit, 0), len(entries))))
	ordered := inOrder(entries)
	if s.Limit > 0 {
		ordered = firstInOrder(entries)
	}
	for e := range ordered {
		if ctx.Err() != nil {
			return false, fmt.Errorf("query all kinds: %w", retry.ContextError(ctx))
		}
		isSelected, err := s.selects(ctx, e)
		if err != nil {
			return false, err
		}
		if !isSelected {
			continue
		}
		if s.Limit > 0 && len(s.page.Entries) == s.Limit {
			last := s.page.Entries[s.Limit-1]
			s.page.Continue = last.kind.position(last.NamespacedName).token()
			return true, nil
		}
		s.page.Entries = append(s.page.Entries, e)
	}
	return false, nil
}

// isAfter reports whether an entry is after the previous page.
func (s *search) isAfter(e Entry) bool {
	return s.Continue == "" || e.kind.position(e.NamespacedName).compare(s.after) > 0
}

// selects reports whether an entry with the queried metadata belongs into the result.
func (s *search) selects(ctx context.Context, e Entry) (bool, error) {
	if isAllowed, err := s.view.permissions.allows(ctx, e.kind.resource, e.Namespace); err != nil || !isAllowed {
		return false, err
	}
	if !s.matchesObject(e) {
		return false, nil
	}
	isDuplicate, err := s.isDuplicate(ctx, e)
	return !isDuplicate, err
}

// isDuplicate reports whether the result has the object as an object of an earlier kind.
func (s *search) isDuplicate(ctx context.Context, e Entry) (bool, error) {
	for _, earlier := range e.kind.same {
		if earlier == e.kind {
			break
		}
		if s.Select != nil && !s.Select(earlier.resource) {
			continue
		}
		same, found := earlier.cache.Entry(e.Namespace, e.Name)
		if !found || same.UID() != e.UID() {
			continue
		}
		if isAllowed, err := s.view.permissions.allows(ctx, earlier.resource, e.Namespace); err != nil || isAllowed {
			return isAllowed, err
		}
	}
	return false, nil
}
