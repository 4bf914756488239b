package inventory

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

// Entry is an object of a [Cache]. Object unpacks it, and returns nil after the cache has ended with an error. The remaining methods do
// not unpack it, except for Readiness of an unschedulable Pod: its status changes with time.
type Entry struct {
	cache.Entry[unstructured.Lazy]

	view *View
	kind *searchedKind
}

// APIResource returns the resource of the object.
func (e Entry) APIResource() *discovery.Resource { return e.kind.resource }

// Handle returns a handle on the resource in the object's namespace. It belongs to the client of the view, and reads whole objects, also
// with ListOptions.Metadata.
func (e Entry) Handle() *dynamic.Handle[unstructured.Lazy] {
	handle := dynamic.As[unstructured.Lazy](e.view.client.ForAPIResource(e.kind.resource))
	if e.Namespace != "" {
		handle = handle.Namespace(e.Namespace)
	}
	return handle
}

// Owners returns the UIDs of the owners, in no order.
func (e Entry) Owners() []types.UID {
	var owners []types.UID
	for uid := range e.IndexValues(indexOwner) {
		owners = append(owners, types.UID(uid))
	}
	return owners
}

// Readiness returns the status of the object by the rules of package readiness, or "" in a cache of metadata.
func (e Entry) Readiness() readiness.Status {
	for value := range e.IndexValues(indexReadiness) {
		if status := readiness.Status(value); status != notLasting {
			return status
		}
		return e.Handle().Readiness(e.Object()).Status
	}
	return ""
}

// entry returns the entry of a kind.
func (v *View) entry(k *searchedKind, e cache.Entry[unstructured.Lazy]) Entry {
	return Entry{e, v, k}
}

// appendOwned appends the entries with an owner that the view permits and selects reports true for. Objects of two kinds are appended
// for both.
func (v *View) appendOwned(ctx context.Context, all []Entry, kinds *searchedKinds, owner types.UID, selects func(Entry) bool) ([]Entry, error) {
	for found := range v.cache.owners.Entries(string(owner)) {
		k := kinds.byCache[found.Cache()]
		if k == nil { // a version that is not searched yet
			continue
		}
		isAllowed, err := v.permissions.allows(ctx, k.resource, found.Namespace)
		if err != nil {
			return nil, err
		}
		if e := v.entry(k, found); isAllowed && selects(e) {
			all = append(all, e)
		}
	}
	return all, nil
}

// usualDescendants is the number of objects below an owner that need no second allocation.
const usualDescendants = 64

// descendants returns the entries below an owner. Objects of two kinds are returned for both.
func (v *View) descendants(ctx context.Context, kinds *searchedKinds, owner types.UID) ([]Entry, error) {
	type furtherObject struct {
		kind *searchedKind
		uid  types.UID
	}
	owners := append(make([]types.UID, 0, usualDescendants), owner)
	first := make(map[types.UID]*searchedKind, usualDescendants)
	first[owner] = nil
	further := map[furtherObject]bool{} // of further kinds
	isNew := func(e Entry) bool {
		uid := e.UID()
		kind, isKnown := first[uid]
		switch {
		case !isKnown:
			first[uid] = e.kind
			owners = append(owners, uid)
			return true
		case kind == nil || kind == e.kind || further[furtherObject{e.kind, uid}]:
			return false
		}
		further[furtherObject{e.kind, uid}] = true
		return true
	}
	all := make([]Entry, 0, usualDescendants)
	var err error
	for next := 0; next < len(owners) && err == nil; next++ {
		all, err = v.appendOwned(ctx, all, kinds, owners[next], isNew)
	}
	return all, err
}
