package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/inventory/relation"
	"github.com/anykind/anykind/unstructured"
)

// referrer is an object that refers to the target, by a field.
type referrer struct {
	gvk                              schema.GroupVersionKind
	namespace, name, relation, field string
	uid                              types.UID
}

// referrerFinder finds the objects that refer to target.
type referrerFinder struct {
	client *dynamic.Client
	target *unstructured.Lazy
	// relations are the relations to the kind of target, by the kind with the field.
	relations map[schema.GroupKind][]relation.Relation

	found []referrer
	// unread are the errors of the namespace of target, or of all namespaces for a cluster-scoped target.
	unread []error
	// unreadOutside are the errors of further namespaces and of cluster-scoped objects.
	unreadOutside []error
}

func (o *ownersOptions) showReferrers(ctx context.Context, target resource.Target) error {
	if _, err := o.output.Printer(o.Out); err != nil {
		return err
	}
	obj, err := dynamic.As[unstructured.Lazy](target.Resource).Get(ctx, target.Name, nil)
	if err != nil {
		return err
	}
	client, err := o.Client(ctx)
	if err != nil {
		return err
	}
	f := &referrerFinder{client: client, target: obj, relations: relationsTo(target.Resource.APIResource())}
	if err := f.find(ctx); err != nil {
		return err
	}
	if o.owned {
		if err := f.findOwned(ctx); err != nil {
			return err
		}
	}
	isTable := o.output.IsDefault()
	if isTable && len(f.found) == 0 {
		o.Errorf("No references to %s %q found", target.Resource, target.Name)
	} else if err := o.writeReferrers(f.found, isTable); err != nil {
		return err
	}
	warnUnread(o.State, "Warning: incomplete", f.unread)
	warnUnread(o.State, "Warning: incomplete outside the namespace", f.unreadOutside)
	return nil
}

// relationsTo returns the relations to the kind of a resource, by the kind with the field. A relation to any kind scales it.
func relationsTo(r *discovery.Resource) map[schema.GroupKind][]relation.Relation {
	kind := r.GVK.GroupKind()
	_, isScalable := r.Subresource("scale")
	relations := map[schema.GroupKind][]relation.Relation{}
	for _, known := range relation.BuiltIn() {
		if known.To == kind || known.To.Empty() && isScalable {
			relations[known.From] = append(relations[known.From], known)
		}
	}
	return relations
}

// namesNamespace reports whether a reference of a relation may name a namespace, as a subject of a RoleBinding does.
func namesNamespace(r relation.Relation) bool {
	return !r.IsSelector && strings.HasSuffix(r.Field, "[*]")
}

// find lists the kinds with a relation to the kind of the target: in the namespace of the target, unless objects outside it may refer to
// the target.
func (f *referrerFinder) find(ctx context.Context) (err error) {
	namespace := f.target.GetNamespace()
	isOutside := func(r *discovery.Resource) bool {
		return namespace == "" || !r.Namespaced || slices.ContainsFunc(f.relations[r.GVK.GroupKind()], namesNamespace)
	}
	if namespace == "" {
		f.unread, err = f.list(ctx, nil, isOutside)
		return err
	}
	denied := map[schema.GroupResource]bool{} // a user may be permitted to list the namespace only
	if f.unreadOutside, err = f.list(ctx, nil, isOutside); err != nil {
		return err
	}
	for _, err := range f.unreadOutside {
		var failed *inventory.ResourceError
		if errors.As(err, &failed) && apierrors.IsForbidden(err) && !slices.Contains(failed.Namespaces, namespace) {
			denied[failed.GroupResource()] = true
		}
	}
	f.unread, err = f.list(ctx, []string{namespace}, func(r *discovery.Resource) bool {
		return !isOutside(r) || denied[r.GVR.GroupResource()]
	})
	return err
}

// list adds the referrers among the selected kinds with a relation. It returns the errors of single kinds.
func (f *referrerFinder) list(ctx context.Context, namespaces []string, selects func(*discovery.Resource) bool) ([]error, error) {
	if len(f.relations) == 0 {
		return nil, nil
	}
	var groups []string
	for kind := range f.relations {
		groups = append(groups, kind.Group)
	}
	return f.each(ctx, &inventory.ListOptions{
		Resources:  &discovery.ResourceFilter{Groups: groups},
		Select:     func(r *discovery.Resource) bool { return len(f.relations[r.GVK.GroupKind()]) > 0 && selects(r) },
		Namespaces: namespaces,
	}, func(obj *unstructured.Lazy) {
		for _, r := range f.relations[obj.GroupVersionKind().GroupKind()] {
			if slices.ContainsFunc(r.References(obj), func(ref relation.Reference) bool { return ref.IsTo(f.target) }) {
				f.add(obj, r.Name, r.Field)
			}
		}
	})
}

// findOwned adds the objects of all kinds that the target owns.
func (f *referrerFinder) findOwned(ctx context.Context) error {
	opts := &inventory.ListOptions{Metadata: true, IncludeVirtual: true, Select: func(r *discovery.Resource) bool {
		return r.GVK.Kind != "Event" && r.GVK.Kind != "ComponentStatus"
	}}
	if namespace := f.target.GetNamespace(); namespace != "" {
		opts.Namespaces = []string{namespace} // owners are in the namespace of their dependents
	}
	unread, err := f.each(ctx, opts, func(obj *unstructured.Lazy) {
		for i, owner := range obj.GetOwnerReferences() {
			if owner.UID == f.target.GetUID() {
				f.add(obj, inventory.OwnerRelation, fmt.Sprintf("metadata.ownerReferences[%d]", i))
			}
		}
	})
	f.unread = append(f.unread, unread...)
	return err
}

// each calls visit for each object of a list. It returns the errors of single kinds.
func (f *referrerFinder) each(ctx context.Context, opts *inventory.ListOptions, visit func(*unstructured.Lazy)) (unread []error, err error) {
	for item, err := range inventory.List[unstructured.Lazy](ctx, f.client, opts) {
		var incomplete *inventory.IncompleteError
		switch {
		case errors.As(err, &incomplete):
			for _, err := range incomplete.Resources {
				if !apierrors.IsMethodNotSupported(err) {
					unread = append(unread, err)
				}
			}
		case err != nil:
			return nil, err
		default:
			visit(item.Object)
		}
	}
	return unread, nil
}

func (f *referrerFinder) add(obj *unstructured.Lazy, relation, field string) {
	f.found = append(f.found, referrer{obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName(), relation, field, obj.GetUID()})
}

// object returns the kind, namespace, name and UID of a referrer, with its relation and field.
func (r *referrer) object() *unstructured.Object {
	obj := &unstructured.Object{Object: map[string]any{"relation": r.relation, "field": r.field}}
	obj.SetGroupVersionKind(r.gvk)
	obj.SetName(r.name)
	obj.SetUID(r.uid)
	if r.namespace != "" {
		obj.SetNamespace(r.namespace)
	}
	return obj
}

// writeReferrers writes a table or the format of -o, ordered by kind, namespace and name.
func (o *ownersOptions) writeReferrers(found []referrer, isTable bool) error {
	slices.SortStableFunc(found, func(a, b referrer) int {
		return cmp.Or(cmp.Compare(a.gvk.GroupKind().String(), b.gvk.GroupKind().String()), cmp.Compare(a.namespace, b.namespace),
			cmp.Compare(a.name, b.name), cmp.Compare(a.relation, b.relation), cmp.Compare(a.field, b.field))
	})
	if isTable {
		return o.writeReferrerTable(found)
	}
	return o.output.Objects(o.Out, func(yield func(*unstructured.Object, error) bool) {
		for i := range found {
			isRepeated := i > 0 && found[i].uid == found[i-1].uid && o.output.Output == "name"
			if !isRepeated && !yield(found[i].object(), nil) {
				return
			}
		}
	})
}

func (o *ownersOptions) writeReferrerTable(found []referrer) error {
	columns := print.NewColumns(o.Out, []string{"RELATION", "OBJECT", "NAMESPACE", "FIELD"})
	for i := range found {
		r := &found[i]
		if err := columns.Row(r.relation, print.Name(r.object()), cmp.Or(r.namespace, "-"), r.field); err != nil {
			return err
		}
	}
	return columns.Flush()
}
