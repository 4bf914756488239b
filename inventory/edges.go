package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/inventory/relation"
	"github.com/anykind/anykind/unstructured"
)

// OwnerRelation is the relation of an object to its owners, in Edge.Relation.
const OwnerRelation = "owner"

// Edge is a reference between two objects.
type Edge struct {
	// Relation is the name of a relation or OwnerRelation, and Field the path of the reference.
	Relation, Field string
	// Kind, Namespace and Name are those of the object at the far end, also if Err is set.
	Kind            schema.GroupKind
	Namespace, Name string
	// Entry is the object at the far end. It is zero if Err is set.
	Entry Entry
	// Err is why the object is missing: the cache does not have it (apierrors.IsNotFound), or the user may not list it
	// (apierrors.IsForbidden).
	Err error
}

// Edges returns the owners of an object of the cache, and the targets of its references by relations, such as [relation.BuiltIn]. The
// order is the order of the references. Several targets of a selector are ordered by name.
func (v *View) Edges(ctx context.Context, obj *unstructured.Lazy, relations []relation.Relation) ([]Edge, error) {
	kinds := v.kindsByName()
	var edges []Edge
	for i, owner := range obj.GetOwnerReferences() {
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
		edge := Edge{Relation: OwnerRelation, Field: fmt.Sprintf("metadata.ownerReferences[%d]", i), Kind: kind, Namespace: obj.GetNamespace(), Name: owner.Name}
		if err := v.resolve(ctx, kinds, &edge); err != nil {
			return nil, err
		}
		edge.checkOwner(obj, &owner)
		edges = append(edges, edge)
	}
	for i := range relations {
		r := &relations[i]
		for _, ref := range r.References(obj) {
			found, err := v.targets(ctx, kinds, r, &ref)
			if err != nil {
				return nil, err
			}
			edges = append(edges, found...)
		}
	}
	return edges, nil
}

// kindsByName returns the kinds of the cache by group and kind.
func (v *View) kindsByName() map[schema.GroupKind]*searchedKind {
	all := v.searchedKinds().ordered
	kinds := make(map[schema.GroupKind]*searchedKind, len(all))
	for _, k := range all {
		kinds[k.resource.GVK.GroupKind()] = k
	}
	return kinds
}

// resolve sets Item or Err.
func (v *View) resolve(ctx context.Context, kinds map[schema.GroupKind]*searchedKind, edge *Edge) error {
	resource := schema.GroupResource{Group: edge.Kind.Group, Resource: strings.ToLower(edge.Kind.Kind)}
	k := kinds[edge.Kind]
	if k == nil {
		edge.Err = apierrors.NewNotFound(resource, edge.Name)
		return nil
	}
	resource = k.resource.GVR.GroupResource()
	if !k.resource.Namespaced {
		edge.Namespace = ""
	}
	isAllowed, err := v.permissions.allows(ctx, k.resource, edge.Namespace)
	if err != nil {
		return err
	}
	if !isAllowed {
		edge.Err = apierrors.NewForbidden(resource, edge.Name, nil)
	} else if e, found := k.cache.Entry(edge.Namespace, edge.Name); found {
		edge.Entry = v.entry(k, e)
	} else {
		edge.Err = apierrors.NewNotFound(resource, edge.Name)
	}
	return nil
}

// checkOwner sets Err if the found object is not the owner: the garbage collector compares the UID, and a cluster-scoped object has no
// namespaced owner.
func (e *Edge) checkOwner(obj *unstructured.Lazy, owner *metav1.OwnerReference) {
	if e.Err == nil && (e.Entry.UID() != owner.UID || e.Namespace != "" && obj.GetNamespace() == "") {
		e.Err = apierrors.NewNotFound(e.Entry.APIResource().GVR.GroupResource(), e.Name+" with the UID "+string(owner.UID))
		e.Entry = Entry{}
	}
}

// targets returns the edges of a reference.
func (v *View) targets(ctx context.Context, kinds map[schema.GroupKind]*searchedKind, r *relation.Relation, ref *relation.Reference) ([]Edge, error) {
	edge := Edge{Relation: r.Name, Field: r.Field, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	if ref.Selector == nil {
		err := v.resolve(ctx, kinds, &edge)
		return []Edge{edge}, err
	}
	k := kinds[ref.Kind]
	if k == nil {
		return nil, nil
	}
	if !k.resource.Namespaced {
		edge.Namespace = ""
	} else if edge.Namespace == "" { // nothing is in the namespace of a cluster-scoped object
		return nil, nil
	}
	if isAllowed, err := v.permissions.allows(ctx, k.resource, edge.Namespace); err != nil || !isAllowed {
		return nil, err
	}
	var edges []Edge
	for entry := range k.cache.All(edge.Namespace, ref.Selector) {
		edge.Name = entry.Name
		edge.Entry = v.entry(k, entry)
		edges = append(edges, edge)
	}
	slices.SortFunc(edges, func(a, b Edge) int { return cmp.Compare(a.Name, b.Name) })
	return edges, nil
}

// EdgesTo returns the edges from objects that refer to an object of the cache by relations, such as [relation.BuiltIn]. Edge.Entry is
// the object with the reference. Query.Owner finds dependents. The edges are ordered as the items of a query. It reads all objects of
// the kinds with a relation to the kind of the object.
func (v *View) EdgesTo(ctx context.Context, obj *unstructured.Lazy, relations []relation.Relation) ([]Edge, error) {
	to := obj.GroupVersionKind().GroupKind()
	var edges []Edge
	for _, k := range v.searchedKinds().ordered {
		var own []*relation.Relation
		for j := range relations {
			if r := &relations[j]; r.From == k.resource.GVK.GroupKind() && (r.To == to || r.To.Empty()) {
				own = append(own, r)
			}
		}
		if len(own) == 0 {
			continue
		}
		first := len(edges)
		for entry := range k.cache.All("", nil) {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("edges to %s %s: %w", obj.GetKind(), cache.KeyOf(obj), retry.ContextError(ctx))
			}
			isAllowed, err := v.permissions.allows(ctx, k.resource, entry.Namespace)
			if err != nil {
				return nil, err
			}
			if isAllowed {
				edges = append(edges, v.edgesTo(k, entry, obj, own)...)
			}
		}
		slices.SortStableFunc(edges[first:], func(a, b Edge) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
	return edges, nil
}

// edgesTo returns the edges from an object of k to a target.
func (v *View) edgesTo(k *searchedKind, e cache.Entry[unstructured.Lazy], target *unstructured.Lazy, relations []*relation.Relation) (edges []Edge) {
	from := e.Object()
	if from == nil {
		return nil
	}
	for _, r := range relations {
		for _, ref := range r.References(from) {
			if ref.IsTo(target) {
				edges = append(edges, Edge{
					Relation: r.Name, Field: r.Field, Kind: r.From, Namespace: e.Namespace, Name: e.Name, Entry: v.entry(k, e),
				})
			}
		}
	}
	return edges
}
