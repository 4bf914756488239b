package tree

import (
	"cmp"
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/inventory/relation"
	"github.com/anykind/anykind/unstructured"
)

// Reference is an object to which a node refers.
type Reference struct {
	// Relation is the name of a relation, such as "mounts".
	Relation string
	// Target is the object. With Err it has the kind, namespace and name only.
	Target *Node
	// Optional reports that the target may be missing.
	Optional bool
	// Err is why the target could not be read: apierrors.IsNotFound for a target that does not exist.
	Err error
}

// IsBroken reports whether a required target does not exist.
func (r *Reference) IsBroken() bool { return !r.Optional && apierrors.IsNotFound(r.Err) }

// unresolved is a reference before its target is read.
type unresolved struct {
	relation string
	relation.Reference
}

// targetKey names a target.
type targetKey struct {
	kind            schema.GroupKind
	namespace, name string
}

// resolver finds the targets of references.
type resolver struct {
	*finder
	resources map[schema.GroupKind]*discovery.Resource
	byKind    map[schema.GroupKind][]*Node // the listed objects, ordered by name
	targets   map[targetKey]Reference
}

// attachReferences sets References of nodes, and reads the targets.
func (f *finder) attachReferences(ctx context.Context, nodes []*Node) error {
	snapshot, err := f.client.Discovery().Snapshot(ctx)
	if err != nil {
		return err
	}
	r := &resolver{f, map[schema.GroupKind]*discovery.Resource{}, map[schema.GroupKind][]*Node{}, map[targetKey]Reference{}}
	for resource := range snapshot.PreferredResources(&discovery.ResourceFilter{Verbs: []string{"get"}}) {
		r.resources[resource.GVK.GroupKind()] = resource
	}
	for _, node := range f.byUID {
		kind := node.Resource.GVK.GroupKind()
		r.byKind[kind] = append(r.byKind[kind], node)
		r.targets[targetKey{kind, node.Object.GetNamespace(), node.Object.GetName()}] = Reference{Target: node}
	}
	for _, listed := range r.byKind {
		slices.SortFunc(listed, func(a, b *Node) int { return cmp.Compare(a.Object.GetName(), b.Object.GetName()) })
	}
	r.readTargets(ctx, nodes)
	for _, node := range nodes {
		for i := range node.unresolved {
			r.attach(node, &node.unresolved[i])
		}
	}
	f.relations = nil // the references of targets are not shown
	f.read(ctx, unreadTargets(nodes))
	return nil
}

// key returns the key of a target with a name.
func (r *resolver) key(ref *unresolved) targetKey {
	key := targetKey{ref.Kind, ref.Namespace, ref.Name}
	if resource := r.resources[ref.Kind]; resource != nil && !resource.Namespaced {
		key.namespace = ""
	}
	return key
}

// readTargets reads the targets that were not listed.
func (r *resolver) readTargets(ctx context.Context, nodes []*Node) {
	var tasks []func()
	for _, node := range nodes {
		for i := range node.unresolved {
			ref := &node.unresolved[i]
			key := r.key(ref)
			if _, isKnown := r.targets[key]; isKnown || ref.Selector != nil {
				continue
			}
			r.targets[key] = Reference{}
			tasks = append(tasks, func() {
				target := r.readTarget(ctx, key)
				r.mu.Lock()
				defer r.mu.Unlock()
				r.targets[key] = target
			})
		}
	}
	parallel(tasks)
}

func (r *resolver) readTarget(ctx context.Context, key targetKey) Reference {
	stub := &unstructured.Object{Object: map[string]any{}}
	stub.SetKind(key.kind.Kind)
	stub.SetNamespace(key.namespace)
	stub.SetName(key.name)
	missing := &Node{Object: stub}
	resource := r.resources[key.kind]
	if resource == nil {
		gr := schema.GroupResource{Group: key.kind.Group, Resource: strings.ToLower(key.kind.Kind)}
		return Reference{Target: missing, Err: apierrors.NewNotFound(gr, key.name)}
	}
	in := r.client.ForAPIResource(resource)
	if resource.Namespaced {
		in = in.Namespace(key.namespace)
	}
	obj, err := in.Metadata().Get(ctx, key.name, nil)
	if err != nil {
		return Reference{Target: missing, Err: err}
	}
	if node := r.add(in, obj); node != nil {
		return Reference{Target: node}
	}
	return Reference{Target: &Node{Object: obj, Resource: resource, in: in}} // without a UID
}

// attach adds the targets of a reference to its node.
func (r *resolver) attach(node *Node, ref *unresolved) {
	if ref.Selector == nil {
		node.addReference(r.targets[r.key(ref)], ref)
		return
	}
	for _, target := range r.byKind[ref.Kind] {
		if target.Object.GetNamespace() == ref.Namespace && ref.Selector.Matches(labels.Set(target.Object.GetLabels())) {
			node.addReference(Reference{Target: target}, ref)
		}
	}
}

// addReference adds a reference, unless the node has a reference by the same relation to the same target.
func (n *Node) addReference(reference Reference, ref *unresolved) {
	reference.Relation = ref.relation
	reference.Optional = ref.Optional
	i := slices.IndexFunc(n.References, func(known Reference) bool {
		return known.Relation == reference.Relation && known.Target == reference.Target
	})
	if i < 0 {
		n.References = append(n.References, reference)
		return
	}
	n.References[i].Optional = n.References[i].Optional && reference.Optional
}

// unreadTargets returns the existing targets of nodes that are not nodes themselves.
func unreadTargets(nodes []*Node) (targets []*Node) {
	known := map[*Node]bool{}
	for _, node := range nodes {
		known[node] = true
	}
	for _, node := range nodes {
		for _, ref := range node.References {
			if ref.Err == nil && !known[ref.Target] {
				known[ref.Target] = true
				targets = append(targets, ref.Target)
			}
		}
	}
	return targets
}
