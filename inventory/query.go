package inventory

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
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
	// Items are ordered by group, resource, namespace and name.
	Items []Item[unstructured.Lazy]
	// Continue is the token of the next page, "" on the last page. A page begins after the last object of the previous page, also if
	// objects have changed meanwhile.
	Continue string
	// ResourceVersions has an entry for each searched resource. The page is based on all changes up to this resourceVersion, and
	// possibly on later changes. It is "" before the initial list.
	ResourceVersions map[schema.GroupVersionResource]string
}

// position is the place of an object in the order of results.
type position struct {
	Group, Resource, Namespace, Name string
}

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.Group, q.Group), cmp.Compare(p.Resource, q.Resource), cmp.Compare(p.Namespace, q.Namespace), cmp.Compare(p.Name, q.Name))
}

func (p position) token() string {
	data, _ := json.Marshal(p) // strings
	return base64.RawURLEncoding.EncodeToString(data)
}

func parseToken(token string) (p position, err error) {
	if token == "" {
		return p, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return p, errors.New("query all kinds: invalid Continue (pass Page.Continue of the previous page)")
	}
	return p, nil
}

// searchedKind is a kind with the kinds that may have the same objects, such as Events of two groups.
type searchedKind struct {
	*kind
	resource *discovery.Resource
	earlier  []searchedKind
}

// searchedKinds returns all kinds in the order of results.
func (v *View) searchedKinds() []searchedKind {
	v.cache.mu.RLock()
	defer v.cache.mu.RUnlock()
	return v.cache.searched
}

// orderKinds returns kinds in the order of results. Their owner's lock must be held.
func orderKinds(kinds map[schema.GroupResource]*kind) []searchedKind {
	byName := map[string][]*kind{}
	for _, k := range kinds {
		byName[k.resource.GVK.Kind] = append(byName[k.resource.GVK.Kind], k)
	}
	all := make([]searchedKind, 0, len(kinds))
	for _, k := range kinds {
		searched := searchedKind{kind: k, resource: k.resource}
		for _, same := range byName[k.resource.GVK.Kind] {
			if same.rank < k.rank {
				searched.earlier = append(searched.earlier, searchedKind{kind: same, resource: same.resource})
			}
		}
		all = append(all, searched)
	}
	slices.SortFunc(all, func(a, b searchedKind) int {
		return a.position(types.NamespacedName{}).compare(b.position(types.NamespacedName{}))
	})
	return all
}

func (k *searchedKind) position(key types.NamespacedName) position {
	return position{k.resource.GVR.Group, k.resource.GVR.Resource, key.Namespace, key.Name}
}

// handle returns the handle of the view's client on a kind.
func (v *View) handle(k *searchedKind) *dynamic.Handle[unstructured.Lazy] {
	return dynamic.As[unstructured.Lazy](v.client.ForAPIResource(k.resource))
}

func (v *View) item(k *searchedKind, obj *unstructured.Lazy) Item[unstructured.Lazy] {
	handle := v.handle(k)
	if namespace := obj.GetNamespace(); namespace != "" {
		handle = handle.Namespace(namespace)
	}
	return Item[unstructured.Lazy]{handle, obj}
}

// search is a call of Query.
type search struct {
	Query

	view   *View
	kinds  []searchedKind
	labels labels.Selector
	fields []fieldRequirement
	after  position
	within map[*kind][]*unstructured.Lazy // the descendants of Owner
	page   Page
}

// Query returns the selected objects of the view. Objects of two resources with the same kind and UID are returned once, see [List]. The
// query of a cache sends no request. ctx ends a long search.
func (v *View) Query(ctx context.Context, q *Query) (*Page, error) {
	s := &search{Query: *cmp.Or(q, &Query{}), view: v, kinds: v.searchedKinds(), page: Page{ResourceVersions: map[schema.GroupVersionResource]string{}}}
	var err error
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
	case s.Descendants:
		if s.within, err = v.descendants(ctx, s.kinds, s.Owner); err != nil {
			return nil, err
		}
	}
	for i := range s.kinds {
		if err := s.searchKind(ctx, &s.kinds[i]); err != nil {
			return nil, err
		}
		if s.page.Continue != "" {
			break
		}
	}
	return &s.page, nil
}

// candidate is an object that may match, loaded on demand.
type candidate struct {
	types.NamespacedName

	load func() *unstructured.Lazy
}

func (s *search) searchKind(ctx context.Context, k *searchedKind) error {
	if s.Select != nil && !s.Select(k.resource) || k.position(types.NamespacedName{}).compare(position{Group: s.after.Group, Resource: s.after.Resource}) < 0 {
		return nil
	}
	if !k.resource.Namespaced {
		if isAllowed, err := s.view.permissions.allows(ctx, k.resource, ""); err != nil || !isAllowed {
			return err
		}
	}
	s.page.ResourceVersions[k.resource.GVR] = k.resourceVersion() // before the objects are read
	candidates := slices.DeleteFunc(s.candidates(k.kind), func(c candidate) bool { return k.position(c.NamespacedName).compare(s.after) <= 0 })
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for _, c := range candidates {
		if ctx.Err() != nil {
			return fmt.Errorf("query all kinds: %w", retry.ContextError(ctx))
		}
		if isAllowed, err := s.view.permissions.allows(ctx, k.resource, c.Namespace); err != nil {
			return err
		} else if !isAllowed {
			continue
		}
		obj := c.load()
		if obj == nil || !s.matches(k, obj) {
			continue
		}
		if isDuplicate, err := s.isDuplicate(ctx, k, obj); err != nil {
			return err
		} else if isDuplicate {
			continue
		}
		if s.Limit > 0 && len(s.page.Items) == s.Limit {
			last := s.page.Items[s.Limit-1]
			gvr := last.Resource.APIResource().GVR
			s.page.Continue = position{gvr.Group, gvr.Resource, last.Object.GetNamespace(), last.Object.GetName()}.token()
			return nil
		}
		s.page.Items = append(s.page.Items, s.view.item(k, obj))
	}
	return nil
}

// isDuplicate reports whether the result has the object as an object of an earlier kind.
func (s *search) isDuplicate(ctx context.Context, k *searchedKind, obj *unstructured.Lazy) (bool, error) {
	for _, earlier := range k.earlier {
		if s.Select != nil && !s.Select(earlier.resource) {
			continue
		}
		same, found := earlier.cache.Get(obj.GetNamespace(), obj.GetName())
		if !found || same.GetUID() != obj.GetUID() {
			continue
		}
		if isAllowed, err := s.view.permissions.allows(ctx, earlier.resource, obj.GetNamespace()); err != nil || isAllowed {
			return isAllowed, err
		}
	}
	return false, nil
}

// candidates returns a superset of the matching objects of a kind, by indexes and without unpacking if possible.
func (s *search) candidates(k *kind) []candidate {
	var objects []*unstructured.Lazy
	switch {
	case s.within != nil:
		objects = s.within[k]
	case s.Owner != "":
		objects = k.ownedBy(s.Owner)
	case s.Readiness != "":
		objects, _ = k.cache.ByIndex(indexReadiness, string(s.Readiness)) // the index exists
	default:
		var all []candidate
		for entry := range k.cache.All(s.Namespace, s.labels) {
			if (s.Name == "" || s.Name == entry.Name) && (s.UID == "" || s.UID == entry.UID()) {
				all = append(all, candidate{entry.NamespacedName, entry.Object})
			}
		}
		return all
	}
	all := make([]candidate, len(objects))
	for i, obj := range objects {
		all[i] = candidate{cache.KeyOf(obj), func() *unstructured.Lazy { return obj }}
	}
	return all
}

// descendants returns the objects below an owner, by kind. Objects of two kinds are in both.
func (v *View) descendants(ctx context.Context, kinds []searchedKind, owner types.UID) (map[*kind][]*unstructured.Lazy, error) {
	type object struct {
		kind *kind
		uid  types.UID
	}
	found := map[*kind][]*unstructured.Lazy{}
	seen := map[object]bool{}
	queued := map[types.UID]bool{owner: true}
	for queue := []types.UID{owner}; len(queue) > 0; queue = queue[1:] {
		for i := range kinds {
			k := &kinds[i]
			for _, obj := range k.ownedBy(queue[0]) {
				uid := obj.GetUID()
				if uid == owner || seen[object{k.kind, uid}] {
					continue
				}
				isAllowed, err := v.permissions.allows(ctx, k.resource, obj.GetNamespace())
				if err != nil {
					return nil, err
				}
				if !isAllowed {
					continue
				}
				seen[object{k.kind, uid}] = true
				found[k.kind] = append(found[k.kind], obj)
				if !queued[uid] {
					queued[uid] = true
					queue = append(queue, uid)
				}
			}
		}
	}
	return found, nil
}
