package controllers

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

// ownerIndex indexes dependents by owner UID, and objects by UID.
type ownerIndex struct {
	keys       map[string]store.Key
	dependents map[string]map[store.Key]bool
}

func newOwnerIndex() *ownerIndex {
	return &ownerIndex{map[string]store.Key{}, map[string]map[store.Key]bool{}}
}

func (i *ownerIndex) observe(event store.Event) {
	if event.Previous != nil {
		for _, ref := range owners(event.Previous) {
			if delete(i.dependents[ref.uid], event.Key); len(i.dependents[ref.uid]) == 0 {
				delete(i.dependents, ref.uid)
			}
		}
	}
	if event.Type == watch.Deleted {
		delete(i.keys, uidOf(event.Object))
		return
	}
	i.keys[uidOf(event.Object)] = event.Key
	for _, ref := range owners(event.Object) {
		if i.dependents[ref.uid] == nil {
			i.dependents[ref.uid] = map[store.Key]bool{}
		}
		i.dependents[ref.uid][event.Key] = true
	}
}

func (i *ownerIndex) of(uid string) []store.Key {
	keys := make([]store.Key, 0, len(i.dependents[uid]))
	for key := range i.dependents[uid] {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b store.Key) int { return compareKeys(a, b) })
	return keys
}

func (i *ownerIndex) key(uid string) (store.Key, bool) {
	key, ok := i.keys[uid]
	return key, ok
}

func compareKeys(a, b store.Key) int {
	return slices.Compare([]string{a.Group, a.Resource, a.Namespace, a.Name}, []string{b.Group, b.Resource, b.Namespace, b.Name})
}

// collect garbage-collects an object. It processes its orphan and foreground finalizers, or deletes it if its owners are gone.
func (c *Controller) collect(ctx context.Context, key store.Key) error {
	obj, found := c.Store.Get(key)
	if !found {
		return nil
	}
	if isDeleting(obj) {
		switch names := finalizers(obj); {
		case slices.Contains(names, metav1.FinalizerOrphanDependents):
			return c.orphan(ctx, key, obj)
		case slices.Contains(names, metav1.FinalizerDeleteDependents):
			return c.finishForeground(ctx, key, obj)
		}
		return nil
	}
	return c.collectDangling(ctx, key, obj)
}

// orphan removes the owner references of all dependents to a deleted owner, and then its finalizer.
func (c *Controller) orphan(ctx context.Context, key store.Key, obj object) error {
	for _, dependent := range c.dependents.of(uidOf(obj)) {
		stored, found := c.Store.Get(dependent)
		if !found {
			continue
		}
		if err := c.removeOwners(ctx, dependent, stored, func(ref owner) bool { return ref.uid == uidOf(obj) }); err != nil {
			return err
		}
	}
	return c.removeFinalizer(ctx, key, obj, metav1.FinalizerOrphanDependents)
}

// finishForeground removes the finalizer of an owner without blocking dependents. Dependents are collected on their own, because
// their owner is terminating.
func (c *Controller) finishForeground(ctx context.Context, key store.Key, obj object) error {
	for _, dependent := range c.dependents.of(uidOf(obj)) {
		stored, found := c.Store.Get(dependent)
		if !found {
			continue
		}
		for _, ref := range owners(stored) {
			if ref.uid == uidOf(obj) && ref.blocks {
				c.enqueue(dependent)
				return nil // observe queues the owner when the dependent is deleted
			}
		}
	}
	return c.removeFinalizer(ctx, key, obj, metav1.FinalizerDeleteDependents)
}

// collectDangling deletes obj if no live owner is left. Otherwise it removes the dangling owner references.
func (c *Controller) collectDangling(ctx context.Context, key store.Key, obj object) error {
	refs := owners(obj)
	gone := map[string]bool{}
	waiting := 0
	for _, ref := range refs {
		state := c.ownerState(ref, key.Namespace)
		switch state {
		case ownerUnknown:
			return nil
		case ownerAbsent:
			gone[ref.uid] = true
		case ownerWaiting:
			waiting++
		default: // present
		}
	}
	switch {
	case len(gone)+waiting == 0:
		return nil
	case len(gone)+waiting < len(refs):
		return c.removeOwners(ctx, key, obj, func(ref owner) bool {
			return gone[ref.uid] || c.ownerState(ref, key.Namespace) == ownerWaiting
		})
	}
	policy := metav1.DeletePropagationBackground
	if waiting > 0 && len(c.dependents.of(uidOf(obj))) > 0 {
		policy = metav1.DeletePropagationForeground
	}
	return c.delete(ctx, key, uidOf(obj), object{"propagationPolicy": string(policy)})
}

// ownerState is the state of an owner.
type ownerState int

const (
	ownerPresent ownerState = iota
	ownerAbsent
	ownerWaiting // in foreground deletion
	ownerUnknown // its kind is not served
)

func (c *Controller) ownerState(ref owner, namespace string) ownerState {
	resource := c.resourceOf(ref)
	if resource == nil {
		return ownerUnknown
	}
	if !resource.Namespaced {
		namespace = ""
	}
	obj, found := c.Store.Get(store.Key{Group: resource.Group, Resource: resource.Plural, Namespace: namespace, Name: ref.name})
	switch {
	case !found || uidOf(obj) != ref.uid:
		return ownerAbsent
	case isDeleting(obj) && slices.Contains(finalizers(obj), metav1.FinalizerDeleteDependents):
		return ownerWaiting
	}
	return ownerPresent
}

func (c *Controller) removeOwners(ctx context.Context, key store.Key, stored object, remove func(owner) bool) error {
	obj := copyOf(stored)
	kept := []any{}
	for i, ref := range owners(stored) {
		if !remove(ref) {
			kept = append(kept, nested.Maps(obj, "metadata", "ownerReferences")[i])
		}
	}
	nested.Map(obj, "metadata")["ownerReferences"] = kept
	return c.update(ctx, key, "", obj, stored)
}

func (c *Controller) removeFinalizer(ctx context.Context, key store.Key, stored object, name string) error {
	obj := copyOf(stored)
	kept := []any{}
	for _, finalizer := range finalizers(stored) {
		if finalizer != name {
			kept = append(kept, finalizer)
		}
	}
	nested.Map(obj, "metadata")["finalizers"] = kept
	return c.update(ctx, key, "", obj, stored)
}
