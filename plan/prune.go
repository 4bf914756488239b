package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/generated"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// planPrunes adds the members that left the set.
func (p *planner) planPrunes(ctx context.Context, objects []*manifest.Object) error {
	if p.options.Set == nil {
		return nil
	}
	events, err := p.options.Set.Prunable(ctx, objects, nil)
	var failed *applyset.ObjectError
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	for _, event := range events {
		change := &Change{Object: event.Object, Reason: event.Reason, Source: Server, Live: event.Live}
		if event.Live != nil {
			change.APIVersion = event.Live.GetAPIVersion()
		}
		switch event.Action {
		case applyset.Kept:
			change.Action = Keep
			change.Planned = event.Live
		case applyset.Failed:
			change.reject(event.Err)
		case applyset.Created, applyset.Configured, applyset.Unchanged, applyset.NotChecked, applyset.Pruned:
			change.Action = Prune
		}
		p.plan.Changes = append(p.plan.Changes, change)
	}
	return nil
}

// dependent is the metadata of an object in the cluster.
type dependent struct {
	ref    applyset.Reference
	uid    types.UID
	owners []metav1.OwnerReference
}

// cascade sets Cascade of all deletes, and names their finalizers. The metadata of all objects in the namespaces of the deleted
// objects is read, and of all objects of the cluster for a deleted cluster-scoped object.
func (p *planner) cascade(ctx context.Context) {
	var deleted []*Change
	namespaces := map[string]bool{}
	for _, change := range p.plan.Changes {
		if change.Action != Prune && change.Action != Replace || change.Live == nil {
			continue
		}
		deleted = append(deleted, change)
		if names := change.Live.GetFinalizers(); len(names) > 0 {
			change.Reason += "; it stays until its finalizers are removed: " + strings.Join(names, ", ")
		}
		switch change.Object.Kind {
		case namespaceKind:
			namespaces[change.Object.Name] = true
		case definitionKind:
			namespaces[""] = true
		default:
			namespaces[change.Object.Namespace] = true
		}
	}
	if len(deleted) == 0 {
		return
	}
	index := newDependentIndex(p.dependents(ctx, namespaces), deleted)
	for _, change := range deleted {
		if ctx.Err() != nil {
			return
		}
		change.Cascade = index.cascadeOf(change)
	}
}

// dependents lists the metadata of the objects in namespaces, or of all objects for "".
func (p *planner) dependents(ctx context.Context, namespaces map[string]bool) (all []dependent) {
	note := func(what string, err error) {
		p.plan.NotValidated = append(p.plan.NotValidated, fmt.Sprintf("objects that are deleted with others: %s: %s", what, message(err)))
	}
	opts := &inventory.ListOptions{
		Select: func(api *discovery.Resource) bool {
			return api.Supports("delete") && !generated.IsEvent(api.GVK.GroupKind()) && (namespaces[""] || api.Namespaced)
		},
		Metadata: true, IncludeVirtual: true, Workers: p.options.Workers,
	}
	if !namespaces[""] {
		opts.Namespaces = slices.Collect(maps.Keys(namespaces))
	}
	for item, err := range inventory.List[unstructured.Object](ctx, p.client, opts) {
		var incomplete *inventory.IncompleteError
		switch obj := item.Object; {
		case errors.As(err, &incomplete):
			for _, err := range incomplete.Resources {
				if !apierrors.IsMethodNotSupported(err) {
					note("list "+err.Resource, err.Err)
				}
			}
		case err != nil:
			note("list the resources", err)
		default:
			kind := item.Resource.APIResource().GVK.GroupKind()
			ref := applyset.Reference{Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
			all = append(all, dependent{ref, obj.GetUID(), obj.GetOwnerReferences()})
		}
	}
	return all
}

// dependentIndex has the objects by what deletes them.
type dependentIndex struct {
	byOwner     map[types.UID][]*dependent
	byNamespace map[string][]*dependent
	byKind      map[schema.GroupKind][]*dependent
	gone        map[types.UID]bool // after all deletes
}

func newDependentIndex(all []dependent, deleted []*Change) *dependentIndex {
	x := &dependentIndex{map[types.UID][]*dependent{}, map[string][]*dependent{}, map[schema.GroupKind][]*dependent{}, map[types.UID]bool{}}
	for i := range all {
		d := &all[i]
		for _, owner := range d.owners {
			x.byOwner[owner.UID] = append(x.byOwner[owner.UID], d)
		}
		x.byNamespace[d.ref.Namespace] = append(x.byNamespace[d.ref.Namespace], d)
		x.byKind[d.ref.Kind] = append(x.byKind[d.ref.Kind], d)
	}
	x.findGone(deleted)
	return x
}

// findGone finds the objects that are gone after all deletes: an object with several owners stays until the last owner is gone.
func (x *dependentIndex) findGone(deleted []*Change) {
	var queue []types.UID
	remove := func(uid types.UID) {
		if !x.gone[uid] {
			x.gone[uid] = true
			queue = append(queue, uid)
		}
	}
	for _, change := range deleted {
		remove(change.Live.GetUID())
		for _, d := range x.content(change) {
			remove(d.uid)
		}
	}
	for len(queue) > 0 {
		owner := queue[0]
		queue = queue[1:]
		for _, d := range x.byOwner[owner] {
			if isOwned(d, x.gone) {
				remove(d.uid)
			}
		}
	}
}

// content returns the objects in a deleted Namespace, or of a deleted CustomResourceDefinition.
func (x *dependentIndex) content(change *Change) []*dependent {
	if change.Object.Kind == namespaceKind {
		return x.byNamespace[change.Object.Name]
	}
	if kind, isDefinition := dynamic.DefinedKind(change.Live); isDefinition {
		return x.byKind[kind]
	}
	return nil
}

// cascadeOf returns the dependents of a deleted object, and their dependents. An object with several deleted owners is a dependent of each.
func (x *dependentIndex) cascadeOf(change *Change) (refs []applyset.Reference) {
	queue := []types.UID{change.Live.GetUID()}
	seen := map[types.UID]bool{change.Live.GetUID(): true}
	add := func(d *dependent) {
		if !seen[d.uid] {
			seen[d.uid] = true
			refs = append(refs, d.ref)
			queue = append(queue, d.uid)
		}
	}
	for _, d := range x.content(change) {
		add(d)
	}
	for len(queue) > 0 {
		owner := queue[0]
		queue = queue[1:]
		for _, d := range x.byOwner[owner] {
			if x.gone[d.uid] {
				add(d)
			}
		}
	}
	applyset.SortReferences(refs)
	return refs
}

// isOwned reports whether all owners of an object are gone.
func isOwned(d *dependent, gone map[types.UID]bool) bool {
	for _, owner := range d.owners {
		if !gone[owner.UID] {
			return false
		}
	}
	return len(d.owners) > 0
}

// minQuotaCreates is the number of new objects in a namespace that are checked together.
const minQuotaCreates = 2

// noteQuotas names the quotas that are checked by several objects of the plan. A dry run counts only its own object.
func (p *planner) noteQuotas(ctx context.Context) {
	creates := map[string]int{}
	var namespaces []string
	for _, change := range p.plan.Changes {
		if change.Object.Kind.String() == "ResourceQuota" && change.Action != Unchanged {
			p.plan.NotValidated = append(p.plan.NotValidated, fmt.Sprintf("objects of the plan against %s, which changes in it", change.Object))
		}
		if namespace := change.Object.Namespace; change.Action == Create && change.Source == Server && namespace != "" {
			if creates[namespace]++; creates[namespace] == minQuotaCreates {
				namespaces = append(namespaces, namespace)
			}
		}
	}
	quotas, err := p.client.ForKind(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ResourceQuota"})
	if isNotServed(err) {
		return
	}
	if err != nil {
		p.plan.NotValidated = append(p.plan.NotValidated, "quotas: "+message(err))
		return
	}
	for _, namespace := range namespaces {
		page, err := quotas.Namespace(namespace).Metadata().ListPage(ctx, nil)
		if err != nil {
			p.plan.NotValidated = append(p.plan.NotValidated, fmt.Sprintf("quotas of namespace %q: %s", namespace, message(err)))
			continue
		}
		for _, quota := range page.Items {
			p.plan.NotValidated = append(p.plan.NotValidated, fmt.Sprintf(
				"ResourceQuota \"%s/%s\" for %d new objects together: the server checks each alone", namespace, quota.GetName(), creates[namespace]))
		}
	}
}
