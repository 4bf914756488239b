package cache

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/unstructured"
)

// list compares a state with the server's objects at the same resourceVersion.
func (a *auditor[T]) list(ctx context.Context, state auditState[T], count *int) (differences []Difference, err error) {
	c := a.cache
	opts := c.auditOptions(state.resourceVersion, metav1.ResourceVersionMatchExact)
	listed := state.resourceVersion
	onPage := func(meta metav1.ListMeta) { listed = meta.ResourceVersion }
	handle := a.handle.WithPageOptions(&dynamic.PageOptions{OnPage: onPage})
	for obj, err := range handle.List(ctx, opts) {
		if err != nil {
			return nil, err
		}
		d := Difference{NamespacedName: KeyOf(obj), Stored: versionOfLazy(obj)}
		if !a.has(d.Namespace, d.Stored.UID) {
			continue
		}
		*count++
		if s, found := state.objects[d.NamespacedName]; found {
			d.Cached = c.objectVersion(s)
		} else {
			d.Cached = state.leftOut[d.NamespacedName]
		}
		delete(state.objects, d.NamespacedName)
		delete(state.leftOut, d.NamespacedName)
		if d.Cached.differs(d.Stored) {
			differences = append(differences, d)
		}
	}
	if listed != state.resourceVersion {
		return nil, fmt.Errorf("list %s: the list is of resourceVersion %s instead of %s (the server does not support resourceVersionMatch=Exact)",
			a.handle, listed, state.resourceVersion)
	}
	for key, s := range state.objects {
		differences = append(differences, Difference{NamespacedName: key, Cached: c.objectVersion(s)})
	}
	c.forgetLeftOut(state.leftOut)
	slices.SortFunc(differences, Difference.compare)
	return differences, nil
}

// confirm reads the object of a difference from etcd and from the server's watch cache.
func (a *auditor[T]) confirm(ctx context.Context, resourceVersion string, d *Difference) (differs bool, err error) {
	d.Stored, err = a.read(ctx, d.NamespacedName, resourceVersion, metav1.ResourceVersionMatchExact)
	if err != nil || !d.Cached.differs(d.Stored) {
		return false, err
	}
	fromWatchCache, err := a.read(ctx, d.NamespacedName, resourceVersion, metav1.ResourceVersionMatchNotOlderThan)
	d.WatchCache = err == nil && !d.Cached.differs(fromWatchCache)
	return true, err
}

// read lists a single name. The zero value is an object that the stream does not have.
func (a *auditor[T]) read(ctx context.Context, key types.NamespacedName, resourceVersion string, match metav1.ResourceVersionMatch) (ObjectVersion, error) {
	handle := a.handle.Named(key.Name)
	if key.Namespace != "" {
		handle = handle.Namespace(key.Namespace)
	}
	for obj, err := range handle.List(ctx, a.cache.auditOptions(resourceVersion, match)) {
		if err != nil {
			return ObjectVersion{}, err
		}
		if version := versionOfLazy(obj); KeyOf(obj) == key && a.has(key.Namespace, version.UID) {
			return version, nil
		}
	}
	return ObjectVersion{}, nil
}

func (c *Cache[T]) auditOptions(resourceVersion string, match metav1.ResourceVersionMatch) *metav1.ListOptions {
	return &metav1.ListOptions{
		LabelSelector: c.opts.LabelSelector, FieldSelector: c.opts.FieldSelector,
		ResourceVersion: resourceVersion, ResourceVersionMatch: match,
	}
}

func versionOfLazy(obj *unstructured.Lazy) ObjectVersion {
	return ObjectVersion{obj.GetUID(), obj.GetResourceVersion()}
}

func (c *Cache[T]) objectVersion(s stored[T]) ObjectVersion {
	uid, resourceVersion := c.versionOf(s)
	return ObjectVersion{uid, resourceVersion}
}

// versionOfKey returns the current state of an object, and of an object that Transform has left out.
func (c *Cache[T]) versionOfKey(key types.NamespacedName) ObjectVersion {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e := c.objects.get(key); e != nil {
		return c.objectVersion(e.stored)
	}
	return c.audits.leftOut[key]
}

// setLeftOut records the received state of an object that Transform has left out. The zero value removes it.
func (c *Cache[T]) setLeftOut(key types.NamespacedName, version ObjectVersion) {
	if c.opts.Audit == nil || c.opts.Transform == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.audits.leftOut, key); version != (ObjectVersion{}) {
		c.audits.leftOut[key] = version
	}
}

// forgetLeftOut removes states that the server does not have any more: the deletion of an unknown object is not emitted.
func (c *Cache[T]) forgetLeftOut(deleted map[types.NamespacedName]ObjectVersion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, version := range deleted {
		if c.audits.leftOut[key] == version {
			delete(c.audits.leftOut, key)
		}
	}
}

// forgetLeftOutOf removes the states of a partition's objects that are not in the shard kept.
func (c *Cache[T]) forgetLeftOutOf(p *partition[T], kept shard.Selector) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.audits.leftOut, func(key types.NamespacedName, version ObjectVersion) bool {
		return p.has(key.Namespace, version.UID) && !kept.Matches(key.Namespace, version.UID)
	})
}
