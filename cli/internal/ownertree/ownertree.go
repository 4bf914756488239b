// Package ownertree finds what objects own, over all kinds that a server serves, and computes the readiness of each.
package ownertree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

const (
	// maxLists is the number of resources that are listed at the same time.
	maxLists = 10
	// maxGets is the number of objects of one resource that are read one by one; more are listed.
	maxGets = 5
	// maxDepth ends a chain of owners that is a circle.
	maxDepth = 100
)

// Node is an object with those that it owns, ordered by kind and name.
type Node struct {
	// Object is the object's metadata.
	Object   *unstructured.Object
	Resource *discovery.Resource
	// Health is the object's readiness; its status is "" if it could not be read.
	Health readiness.Result
	// IsSubject marks the objects that Find was called for: what is above them are their owners.
	IsSubject bool
	Owned     []*Node

	in *dynamic.Resource
}

// Tree is the result of Find.
type Tree struct {
	// Roots are the subjects, or their topmost owners. A chain of owners has only those that lead to a subject.
	Roots []*Node
	// Unread are errors of resources that could not be listed or read: the tree may lack objects of these.
	Unread []error
}

// Subject is an object to begin with, and the handle on its resource in its namespace.
type Subject struct {
	Object   *unstructured.Object
	Resource *dynamic.Resource
}

// Find returns the tree of the subjects. It lists the metadata of all resources, in namespace or, with "", in all, several at
// a time; memory is that of these metadata. The error is that of discovery or ctx.
func Find(ctx context.Context, client *dynamic.Client, subjects []Subject, namespace string) (*Tree, error) {
	silent := client.WithDefaults(&dynamic.Defaults{OnWarning: func(context.Context, string) {}}) // of kinds that nobody asked for
	f := &finder{client: silent, namespace: namespace, byUID: map[types.UID]*Node{}, owned: map[types.UID][]*Node{}}
	if err := f.listAll(ctx); err != nil {
		return nil, err
	}
	tree := &Tree{}
	seen := map[types.UID]bool{}
	for _, subject := range subjects {
		node := f.byUID[subject.Object.GetUID()]
		if node == nil {
			node = f.add(subject.Resource, subject.Object)
		}
		node.IsSubject = true
		f.attachOwned(node, seen, 0)
	}
	for _, subject := range subjects {
		root := f.attachOwners(ctx, f.byUID[subject.Object.GetUID()], seen)
		if !slices.Contains(tree.Roots, root) && !isOwned(root, tree.Roots) {
			tree.Roots = append(tree.Roots, root)
		}
	}
	tree.Roots = slices.DeleteFunc(tree.Roots, func(root *Node) bool {
		return slices.ContainsFunc(tree.Roots, func(other *Node) bool { return other != root && contains(other, root, 0) })
	})
	f.readHealth(ctx, tree.Roots)
	tree.Unread = f.errs
	return tree, ctx.Err()
}

// isOwned reports whether a node is in the tree of one of the roots.
func isOwned(node *Node, roots []*Node) bool {
	return slices.ContainsFunc(roots, func(root *Node) bool { return contains(root, node, 0) })
}

func contains(root, node *Node, depth int) bool {
	return depth < maxDepth && (root == node || slices.ContainsFunc(root.Owned, func(n *Node) bool { return contains(n, node, depth+1) }))
}

// finder has the metadata of all objects.
type finder struct {
	client    *dynamic.Client
	namespace string

	mu    sync.Mutex
	byUID map[types.UID]*Node
	owned map[types.UID][]*Node
	errs  []error
}

// add enters an object. An object that two groups serve is entered once.
func (f *finder) add(in *dynamic.Resource, obj *unstructured.Object) *Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	uid := obj.GetUID()
	if node := f.byUID[uid]; node != nil || uid == "" {
		return node
	}
	node := &Node{Object: obj, Resource: in.Mapping(), in: in}
	f.byUID[uid] = node
	for _, owner := range obj.GetOwnerReferences() {
		f.owned[owner.UID] = append(f.owned[owner.UID], node)
	}
	return node
}

func (f *finder) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, err)
}

// listAll lists the metadata of all resources but those that have no owners.
func (f *finder) listAll(ctx context.Context) error {
	handles, err := f.client.PreferredResources(ctx, &discovery.ResourceFilter{Verbs: []string{"list", "get"}})
	if err != nil {
		return err
	}
	handles = slices.DeleteFunc(handles, func(r *dynamic.Resource) bool {
		switch r.Mapping().GVR.GroupResource().String() {
		case "events", "events.events.k8s.io", "componentstatuses":
			return true
		}
		return f.namespace != "" && !r.Mapping().Namespaced
	})
	parallel(handles, func(r *dynamic.Resource) {
		if err := f.listResource(ctx, r); err != nil && ctx.Err() == nil && !apierrors.IsMethodNotSupported(err) && !apierrors.IsNotFound(err) {
			f.fail(fmt.Errorf("list %s: %w", r.Mapping().GVR.GroupResource(), err))
		}
	})
	return ctx.Err()
}

func (f *finder) listResource(ctx context.Context, r *dynamic.Resource) error {
	list := r.AllNamespaces()
	if f.namespace != "" {
		list = r.Namespace(f.namespace)
	}
	for obj, err := range list.Metadata().List(ctx, nil) {
		if err != nil {
			return err
		}
		in := r
		if namespace := obj.GetNamespace(); namespace != "" {
			in = r.Namespace(namespace)
		}
		obj.SetManagedFields(nil)
		f.add(in, obj)
	}
	return nil
}

// parallel calls do for all elements, maxLists at a time.
func parallel[T any](all []T, do func(T)) {
	queue := make(chan T)
	var workers sync.WaitGroup
	for range min(maxLists, len(all)) {
		workers.Go(func() {
			for one := range queue {
				do(one)
			}
		})
	}
	for _, one := range all {
		queue <- one
	}
	close(queue)
	workers.Wait()
}

// attachOwned sets what a node owns, directly and indirectly. An object with two owners is in the tree of the first.
func (f *finder) attachOwned(node *Node, seen map[types.UID]bool, depth int) {
	uid := node.Object.GetUID()
	if seen[uid] || depth > maxDepth {
		return
	}
	seen[uid] = true
	owned := slices.Clone(f.owned[uid])
	slices.SortFunc(owned, func(a, b *Node) int {
		return cmp.Or(strings.Compare(a.Object.GetKind(), b.Object.GetKind()), strings.Compare(a.Object.GetName(), b.Object.GetName()))
	})
	for _, below := range owned {
		if !seen[below.Object.GetUID()] {
			node.Owned = append(node.Owned, below)
			f.attachOwned(below, seen, depth+1)
		} else if below.IsSubject && !contains(below, node, 0) && !slices.Contains(node.Owned, below) {
			node.Owned = append(node.Owned, below)
		}
	}
}

// attachOwners puts a node below its owners and returns the topmost one. Of several owners it takes the controller or first.
func (f *finder) attachOwners(ctx context.Context, node *Node, seen map[types.UID]bool) *Node {
	for range maxDepth {
		owner := f.owner(ctx, node)
		if owner == nil || contains(node, owner, 0) {
			return node
		}
		if !slices.Contains(owner.Owned, node) {
			owner.Owned = append(owner.Owned, node)
		}
		seen[owner.Object.GetUID()] = true
		node = owner
	}
	return node
}

// owner returns the owner of a node; nil if it has none. One outside of the listed resources is read.
func (f *finder) owner(ctx context.Context, node *Node) *Node {
	owners := node.Object.GetOwnerReferences()
	if len(owners) == 0 {
		return nil
	}
	ref := owners[0]
	if controller := metav1.GetControllerOf(node.Object); controller != nil {
		ref = *controller
	}
	if known := f.byUID[ref.UID]; known != nil {
		return known
	}
	stub := &unstructured.Object{Object: map[string]any{}}
	stub.SetAPIVersion(ref.APIVersion)
	stub.SetKind(ref.Kind)
	in, err := f.client.ForObject(ctx, stub)
	if err != nil {
		f.fail(fmt.Errorf("owner %s/%s of %s/%s: %w", ref.Kind, ref.Name, node.Object.GetKind(), node.Object.GetName(), err))
		return nil
	}
	if in.Mapping().Namespaced {
		in = in.Namespace(node.Object.GetNamespace())
	}
	obj, err := in.Metadata().Get(ctx, ref.Name, nil)
	if err == nil && obj.GetUID() != ref.UID {
		err = errors.New("deleted: another object has its name")
	}
	if err != nil {
		f.fail(fmt.Errorf("owner %s/%s of %s/%s: %w", ref.Kind, ref.Name, node.Object.GetKind(), node.Object.GetName(), err))
		return nil
	}
	return f.add(in, obj)
}

// readHealth reads the objects of the trees and computes their readiness: few of a resource one by one, many by a list.
func (f *finder) readHealth(ctx context.Context, roots []*Node) {
	type place struct{ path, namespace string }
	groups := map[place][]*Node{}
	var visit func(nodes []*Node, depth int)
	visited := map[*Node]bool{}
	visit = func(nodes []*Node, depth int) {
		for _, node := range nodes {
			if visited[node] || depth > maxDepth {
				continue
			}
			visited[node] = true
			at := place{node.Resource.GVR.String(), node.Object.GetNamespace()}
			groups[at] = append(groups[at], node)
			visit(node.Owned, depth+1)
		}
	}
	visit(roots, 0)
	var tasks []func()
	for _, nodes := range groups {
		if len(nodes) > maxGets {
			tasks = append(tasks, func() { f.readByList(ctx, nodes) })
			continue
		}
		for _, node := range nodes {
			tasks = append(tasks, func() { f.readByGet(ctx, node) })
		}
	}
	parallel(tasks, func(task func()) { task() })
}

func (f *finder) readByGet(ctx context.Context, node *Node) {
	obj, err := node.in.Get(ctx, node.Object.GetName(), nil)
	switch {
	case err == nil:
		node.Health = readiness.Compute(obj)
	case apierrors.IsNotFound(err):
		node.Health = readiness.Result{Status: readiness.Terminating, Message: "deleted meanwhile"}
	case ctx.Err() == nil:
		f.fail(fmt.Errorf("get %s/%s: %w", node.Object.GetKind(), node.Object.GetName(), err))
	}
}

func (f *finder) readByList(ctx context.Context, nodes []*Node) {
	wanted := map[types.UID]*Node{}
	for _, node := range nodes {
		node.Health = readiness.Result{Status: readiness.Terminating, Message: "deleted meanwhile"}
		wanted[node.Object.GetUID()] = node
	}
	for obj, err := range nodes[0].in.List(ctx, nil) {
		if err != nil {
			for _, node := range wanted {
				node.Health = readiness.Result{}
			}
			if ctx.Err() == nil {
				f.fail(fmt.Errorf("list %s: %w", nodes[0].Resource.GVR.GroupResource(), err))
			}
			return
		}
		if node := wanted[obj.GetUID()]; node != nil {
			node.Health = readiness.Compute(obj)
			delete(wanted, obj.GetUID())
		}
	}
}
