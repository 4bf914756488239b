// Package tree finds the owners and dependents of objects, over all served kinds, and computes the readiness of each object.
//
//	finder := &resource.Finder{Connection: connection}
//	found, err := tree.Find(ctx, client, finder.Objects(ctx, []string{"deploy/web"}, true), nil)
//	…
//	err = tree.Write(os.Stdout, found, nil)
package tree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/inventory/relation"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

const (
	// maxLists is the number of concurrent requests.
	maxLists = 10
	// maxGets is the largest number of objects per resource and namespace to read with GET. More objects are listed.
	maxGets = 5
	// maxDepth limits the depth of a tree, because owner references may form a cycle.
	maxDepth = 100
)

// Node is an object with its dependents in Owned, ordered by kind and name.
type Node struct {
	// Object is the object's metadata.
	Object   *unstructured.Object
	Resource *discovery.Resource
	// Health is the object's readiness. Its Status is "" if the object could not be read.
	Health readiness.Result
	// IsSubject marks the arguments of Find. The nodes above a subject are its owners.
	IsSubject bool
	Owned     []*Node
	// References are the objects to which the object refers, with FindOptions.References.
	References []Reference

	in         *dynamic.Resource
	unresolved []unresolved
}

// Tree is the result of Find.
type Tree struct {
	// Roots are the topmost owners of the subjects, or the subjects themselves. An owner above a subject contains only the
	// branches with subjects.
	Roots []*Node
	// Namespace is the namespace of all subjects, or "" if they have several or a subject is cluster-scoped.
	Namespace string
	// Unread are the errors of unreadable resources. The tree may lack their objects.
	Unread []error
}

// FindOptions configures [Find].
type FindOptions struct {
	// References finds the references of each object by [relation.BuiltIn].
	References bool
}

// Find returns the tree of the subjects, which are whole objects with the handles on their resources, such as those of
// [resource.Finder.Objects]. It lists the metadata of all resources in Tree.Namespace, or in all namespaces, with up to maxLists
// concurrent requests, and holds all listed metadata in memory. Errors of subjects, discovery and ctx are returned, errors of single
// resources are in Tree.Unread. Without subjects the tree is empty.
func Find(ctx context.Context, client *dynamic.Client, subjects iter.Seq2[*resource.Info, error], opts *FindOptions) (*Tree, error) {
	opts = cmp.Or(opts, &FindOptions{})
	infos, err := collect(subjects)
	if len(infos) == 0 || err != nil {
		return &Tree{}, err
	}
	tree := &Tree{Namespace: commonNamespace(infos)}
	silent := client.WithDefaults(&dynamic.Defaults{OnWarning: func(context.Context, string) {}}) // from unrequested kinds
	f := &finder{client: silent, namespace: tree.Namespace, byUID: map[types.UID]*Node{}, owned: map[types.UID][]*Node{}}
	if opts.References {
		f.relations = relation.BuiltIn()
	}
	if err := f.listAll(ctx); err != nil {
		return nil, err
	}
	seen := map[types.UID]bool{}
	for _, info := range infos {
		node := f.byUID[info.Object.GetUID()]
		if node == nil {
			node = f.add(info.Resource, info.Object)
		}
		node.IsSubject = true
		f.attachOwned(node, seen, 0)
	}
	for _, info := range infos {
		root := f.attachOwners(ctx, f.byUID[info.Object.GetUID()], seen)
		if !slices.Contains(tree.Roots, root) && !isOwned(root, tree.Roots) {
			tree.Roots = append(tree.Roots, root)
		}
	}
	tree.Roots = slices.DeleteFunc(tree.Roots, func(root *Node) bool {
		return slices.ContainsFunc(tree.Roots, func(other *Node) bool { return other != root && contains(other, root, 0) })
	})
	nodes := f.read(ctx, tree.Roots)
	if opts.References {
		if err := f.attachReferences(ctx, nodes); err != nil {
			return nil, err
		}
	}
	tree.Unread = f.errs
	return tree, ctx.Err()
}

// collect returns the subjects and their joined errors.
func collect(subjects iter.Seq2[*resource.Info, error]) ([]*resource.Info, error) {
	var infos []*resource.Info
	var errs []error
	for info, err := range subjects {
		if err == nil && info.Object.GetUID() == "" {
			err = fmt.Errorf("tree %s: the object has no UID, so no object can name it as owner", print.Name(info.Object))
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		infos = append(infos, info)
	}
	return infos, errors.Join(errs...)
}

// commonNamespace returns the namespace of all subjects, or "" if they have none or several.
func commonNamespace(infos []*resource.Info) string {
	namespace := infos[0].Object.GetNamespace()
	for _, info := range infos {
		if info.Object.GetNamespace() != namespace {
			return ""
		}
	}
	return namespace
}

// isOwned reports whether a node is in the tree of one of the roots.
func isOwned(node *Node, roots []*Node) bool {
	return slices.ContainsFunc(roots, func(root *Node) bool { return contains(root, node, 0) })
}

func contains(root, node *Node, depth int) bool {
	return depth < maxDepth && (root == node || slices.ContainsFunc(root.Owned, func(n *Node) bool { return contains(n, node, depth+1) }))
}

// finder indexes the metadata of all listed objects by UID and by owner.
type finder struct {
	client    *dynamic.Client
	namespace string
	relations []relation.Relation // to read, or nil

	mu    sync.Mutex
	byUID map[types.UID]*Node
	owned map[types.UID][]*Node
	errs  []error
}

// add adds an object to the indexes. An object served by two groups is added once.
func (f *finder) add(in *dynamic.Resource, obj *unstructured.Object) *Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	uid := obj.GetUID()
	if node := f.byUID[uid]; node != nil || uid == "" {
		return node
	}
	node := &Node{Object: obj, Resource: in.APIResource(), in: in}
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

// listAll lists the metadata of all resources except events and componentstatuses.
func (f *finder) listAll(ctx context.Context) error {
	opts := &inventory.ListOptions{
		Select: func(r *discovery.Resource) bool {
			return r.Supports("get") && r.GVK.Kind != "Event" && r.GVK.Kind != "ComponentStatus"
		},
		Metadata:       true,
		IncludeVirtual: true, // Endpoints have owners and dependents
		Workers:        maxLists,
	}
	if f.namespace != "" {
		opts.Namespaces = []string{f.namespace}
	}
	for item, err := range inventory.List[unstructured.Object](ctx, f.client, opts) {
		var incomplete *inventory.IncompleteError
		switch {
		case errors.As(err, &incomplete):
			for _, err := range incomplete.Resources {
				if !apierrors.IsMethodNotSupported(err) {
					f.fail(fmt.Errorf("list %s: %w", err.GroupResource(), err.Err))
				}
			}
		case err != nil:
			return err
		default:
			item.Object.SetManagedFields(nil)
			f.add(item.Resource, item.Object)
		}
	}
	return nil
}

// parallel calls all tasks, with up to maxLists concurrent calls.
func parallel(tasks []func()) {
	queue := make(chan func())
	var workers sync.WaitGroup
	for range min(maxLists, len(tasks)) {
		workers.Go(func() {
			for task := range queue {
				task()
			}
		})
	}
	for _, task := range tasks {
		queue <- task
	}
	close(queue)
	workers.Wait()
}

// attachOwned sets Owned of a node and of its dependents. An object with two owners is attached to the first visited owner.
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

// attachOwners attaches a node to its owner, the owner to its own owner and so on, and returns the topmost owner.
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

// owner returns the controller of a node, or its first owner without a controller, or nil without owners. An owner outside
// the listed resources is read.
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
		f.fail(fmt.Errorf("get owner %s/%s of %s/%s: %w", ref.Kind, ref.Name, node.Object.GetKind(), node.Object.GetName(), err))
		return nil
	}
	if in.APIResource().Namespaced {
		in = in.Namespace(node.Object.GetNamespace())
	}
	obj, err := in.Metadata().Get(ctx, ref.Name, nil)
	if err == nil && obj.GetUID() != ref.UID {
		err = errors.New("the owner was deleted, and a new object has its name")
	}
	if err != nil {
		f.fail(fmt.Errorf("get owner %s/%s of %s/%s: %w", ref.Kind, ref.Name, node.Object.GetKind(), node.Object.GetName(), err))
		return nil
	}
	return f.add(in, obj)
}

// read reads the objects of the trees, sets Health and unresolved, and returns the nodes. Up to maxGets objects of a resource are read
// with GET, more by LIST.
func (f *finder) read(ctx context.Context, roots []*Node) (all []*Node) {
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
			all = append(all, node)
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
	parallel(tasks)
	return all
}

func (f *finder) readByGet(ctx context.Context, node *Node) {
	handle := dynamic.As[unstructured.Lazy](node.in)
	obj, err := handle.Get(ctx, node.Object.GetName(), nil)
	switch {
	case err == nil:
		f.set(node, handle, obj)
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
	handle := dynamic.As[unstructured.Lazy](nodes[0].in)
	for obj, err := range handle.List(ctx, nil) {
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
			f.set(node, handle, obj)
			delete(wanted, obj.GetUID())
		}
	}
}

// set sets what a node has of its whole object.
func (f *finder) set(node *Node, handle *dynamic.Handle[unstructured.Lazy], obj *unstructured.Lazy) {
	node.Health = handle.Readiness(obj)
	for i := range f.relations {
		r := &f.relations[i]
		for _, ref := range r.References(obj) {
			node.unresolved = append(node.unresolved, unresolved{r.Name, ref})
		}
	}
}
