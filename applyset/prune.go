package applyset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/generated"
	"github.com/anykind/anykind/unstructured"
)

var (
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)

// Delete deletes all members, in reverse order, and then the parent. It waits until the members are gone; ctx bounds the wait. A
// parent with data of its own stays, without the record of the set. Members with an owner, the CustomResourceDefinition of the parent's
// kind, and shared Namespaces and CustomResourceDefinitions are kept like in Apply, and so is the parent then. The Namespace of the
// parent is deleted last if it is a member, and the parent with it. A set without a parent is an error for which apierrors.IsNotFound
// holds.
func (s *Set) Delete(ctx context.Context, opts *ApplyOptions) ([]Event, error) {
	r := &run{Set: s, options: valueOf(opts), isDelete: true}
	r.options.NoPrune = false
	err := r.delete(ctx)
	if err != nil {
		err = fmt.Errorf("delete the set of %s: %w", s.parent, err)
	}
	return r.events, err
}

func (r *run) delete(ctx context.Context) error {
	var err error
	if r.desired, err = r.desire(ctx, nil); err != nil {
		return err
	}
	resource, err := r.parentResource(ctx)
	if err != nil {
		return err
	}
	if _, err := resource.Metadata().Get(ctx, r.parent.Name, nil); err != nil {
		return err
	}
	if ctx, err = r.begin(ctx, r.readParent, r.readSet); err != nil {
		return err
	}
	r.prune(ctx)
	return r.end(ctx)
}

// checkPrunes sets the reasons to keep members that left the set, and calls CheckPrune for each member to delete.
func (r *run) checkPrunes(ctx context.Context) error {
	r.byUID = r.desiredByUID()
	var errs []error
	for _, m := range r.left {
		var err error
		if m.kept, err = r.keptReason(ctx, m); err != nil {
			return fmt.Errorf("%s left the set: %w", m.Reference, err)
		}
		if r.options.CheckPrune != nil && m.kept == "" && m.live.GetDeletionTimestamp() == nil {
			errs = append(errs, r.options.CheckPrune(m.Reference, m.live))
		}
	}
	return errors.Join(errs...)
}

func (r *run) keptReason(ctx context.Context, m *member) (string, error) {
	owner := ownerReason(m.live)
	switch {
	case r.options.NoPrune:
		return "left the set", nil
	case owner != "":
		return owner, nil
	case m.live.GetDeletionTimestamp() != nil:
		return "", nil
	case r.hasParent(m) && !r.isDelete:
		return "it contains the parent of the set", nil
	case r.definesParent(m):
		return "it defines the kind of the parent of the set", nil
	}
	if same := r.byUID[m.live.GetUID()]; same != nil {
		return fmt.Sprintf("it is %s of the set", same.Reference), nil
	}
	if needs := r.desiredIn(m); needs != nil {
		return fmt.Sprintf("%s needs it", needs.Reference), nil
	}
	switch {
	case r.options.PruneShared:
		return "", nil
	case m.Kind == namespaceKind:
		return r.foreignInNamespace(ctx, m.Name)
	case m.Kind == definitionKind:
		return r.foreignOfKind(ctx, m)
	default:
		return "", nil
	}
}

// definesParent reports whether a member is the CustomResourceDefinition of the parent's kind.
func (r *run) definesParent(m *member) bool {
	kind, isDefinition := dynamic.DefinedKind(m.live)
	return isDefinition && kind == r.parent.kind()
}

// desiredByUID returns the objects to apply by the UIDs of their live objects. Some objects are served in two groups, for example Events:
// a member that left the set may have such a UID.
func (r *run) desiredByUID() map[types.UID]*member {
	byUID := map[types.UID]*member{}
	if len(r.left) == 0 {
		return byUID
	}
	for _, m := range r.desired.members {
		if m.live != nil {
			byUID[m.live.GetUID()] = m
		}
	}
	return byUID
}

// hasParent reports whether a member is the Namespace of the parent.
func (r *run) hasParent(m *member) bool {
	return m.Kind == namespaceKind && m.Name == r.parent.Namespace
}

// ownerReason returns why an object with an owner is kept, and "" without an owner.
func ownerReason(obj *unstructured.Object) string {
	owners := obj.GetOwnerReferences()
	if len(owners) == 0 {
		return ""
	}
	return fmt.Sprintf("it has the owner %s %q", owners[0].Kind, owners[0].Name)
}

// desiredIn returns an object to apply in a Namespace, or of the kind of a CustomResourceDefinition.
func (r *run) desiredIn(left *member) *member {
	kinds := map[schema.GroupKind]bool{}
	if left.Kind == definitionKind {
		kinds = definedKinds([]*unstructured.Object{left.live})
	}
	for ref, m := range r.desired.members {
		if _, isDefined := kinds[ref.Kind]; isDefined || left.Kind == namespaceKind && ref.Namespace == left.Name {
			return m
		}
	}
	return nil
}

// foreignInNamespace returns a reason if a namespace contains, or may contain, an object that is neither a member nor owned by an object
// nor made for every namespace.
func (r *run) foreignInNamespace(ctx context.Context, namespace string) (string, error) {
	snapshot, err := r.client.Discovery().Refresh(ctx) // others may have defined kinds meanwhile
	if err != nil {
		return "", err
	}
	for version, state := range snapshot.Versions() {
		if !state.Healthy() {
			return fmt.Sprintf("the server does not serve %s at present, of which it may contain objects", version), nil
		}
	}
	resources, err := r.client.PreferredResources(ctx, nil)
	if err != nil {
		return "", err
	}
	for _, resource := range resources {
		api := resource.APIResource()
		if !api.Namespaced || !api.Supports("list") || !api.Supports("delete") || generated.IsEvent(api.GVK.GroupKind()) {
			continue
		}
		reason, err := r.foreign(ctx, resource.Namespace(namespace))
		if reason != "" || err != nil {
			return reason, err
		}
	}
	return "", nil
}

func (r *run) foreignOfKind(ctx context.Context, definition *member) (string, error) {
	for kind := range definedKinds([]*unstructured.Object{definition.live}) {
		resource, err := r.servedKind(ctx, kind)
		if err != nil || resource == nil {
			return "", err
		}
		return r.foreign(ctx, resource.AllNamespaces())
	}
	return "", nil
}

// foreign returns a reason if a collection has an object that is no member.
func (r *run) foreign(ctx context.Context, collection *dynamic.Resource) (string, error) {
	isExpected := func(obj *unstructured.Object) bool {
		return len(obj.GetOwnerReferences()) > 0 || obj.GetName() == r.parent.Name && r.isParent(collection.APIResource(), obj) ||
			generated.IsInEveryNamespace(collection.APIResource().GVK.GroupKind(), obj)
	}
	for obj, err := range collection.Metadata().List(ctx, &metav1.ListOptions{LabelSelector: PartOfLabel + "!=" + r.id}) {
		if apierrors.IsNotFound(err) { // discovery is older than a deletion
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if !isExpected(obj) {
			ref := Reference{Kind: collection.APIResource().GVK.GroupKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
			return fmt.Sprintf("%s is not of the set", ref), nil
		}
	}
	return "", nil
}

func (r *run) isParent(api *discovery.Resource, obj *unstructured.Object) bool {
	return Reference{Kind: api.GVK.GroupKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()} == r.parent.Reference()
}

// prune deletes the members that left the set, stage by stage in reverse order. A stage waits until the objects of the stage before
// are gone. After an error, further stages are kept.
func (r *run) prune(ctx context.Context) {
	r.byUID = r.desiredByUID() // with the applied objects
	stages := r.leftStages()
	for i, stage := range stages {
		failed := len(r.errs)
		r.parallel(len(stage), func(i int) { r.add(stage[i], r.pruneMember(ctx, stage[i])) })
		if i < len(stages)-1 || r.isDelete {
			r.parallel(len(stage), func(i int) { r.awaitPruned(ctx, stage[i]) })
		}
		if len(r.errs) > failed {
			return
		}
	}
}

// leftStages returns the members that left the set, in the order of their deletion.
func (r *run) leftStages() [][]*member {
	objects := make([]*unstructured.Object, len(r.left))
	byObject := map[*unstructured.Object]*member{}
	for i, m := range r.left {
		objects[i] = m.live
		byObject[m.live] = m
	}
	plan, err := dynamic.InstallOrder(objects, r.opts.Namespace)
	if err != nil {
		return r.parentLast([][]*member{slices.Clone(r.left)}) // annotations changed in the cluster do not block the deletion
	}
	var stages [][]*member
	for _, objects := range slices.Backward(plan.Stages) {
		var stage []*member
		for _, obj := range objects {
			stage = append(stage, byObject[obj])
		}
		stages = append(stages, stage)
	}
	return r.parentLast(stages)
}

// parentLast moves the Namespace of the parent to a last stage of its own: nothing is written after the parent is gone with it.
func (r *run) parentLast(stages [][]*member) [][]*member {
	var last []*member
	for i := range stages {
		stages[i] = slices.DeleteFunc(stages[i], func(m *member) bool {
			if !r.isDelete || !r.hasParent(m) {
				return false
			}
			last = append(last, m)
			return true
		})
	}
	if last != nil {
		stages = append(stages, last)
	}
	return stages
}

// checkAgain sets the reason to keep a member again, right before its deletion. Since the first check, others may have created objects
// in a Namespace or of a CustomResourceDefinition, and an apply may have had the member's UID.
func (r *run) checkAgain(ctx context.Context, m *member) (err error) {
	if m.kept != "" || r.options.DryRun {
		return nil
	}
	if m.Kind == namespaceKind || m.Kind == definitionKind || r.byUID[m.live.GetUID()] != nil {
		m.kept, err = r.keptReason(ctx, m)
	}
	return err
}

func (r *run) pruneMember(ctx context.Context, m *member) Event {
	event := Event{Object: m.Reference, Action: Pruned, Live: m.live, Reason: "left the set"}
	if event.Err = r.checkAgain(ctx, m); event.Err != nil {
		return event
	}
	switch {
	case m.kept != "":
		event.Action = Kept
		event.Reason = m.kept
		return event
	case r.hasParent(m) && r.isDelete && r.lock != nil:
		r.lock.endWithNamespace()
	}
	if m.live.GetDeletionTimestamp() != nil {
		event.Reason = "it is already being deleted"
		return event
	}
	remaining, err := r.deleteMember(ctx, m)
	if event.Err = err; err == nil && !r.options.DryRun {
		m.live = remaining
	}
	return event
}

// maxDeletes limits the attempts to delete an object that changes meanwhile.
const maxDeletes = 10

// deleteMember deletes the object as it was read. After a change it reads the object again, and deletes it if it is still a member
// without an owner. It returns the object if it is still terminating.
func (r *run) deleteMember(ctx context.Context, m *member) (remaining *unstructured.Object, err error) {
	background := metav1.DeletePropagationBackground
	live := m.live
	for range maxDeletes {
		resource, err := r.writer(ctx, m.resource)
		if err != nil {
			return nil, err
		}
		uid := live.GetUID()
		version := live.GetResourceVersion()
		result, err := resource.Delete(ctx, m.Name, &metav1.DeleteOptions{
			PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
		})
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err == nil && result.Object != nil && result.Object.GetDeletionTimestamp() != nil:
			return result.Object, nil
		case err == nil:
			return nil, nil
		case !apierrors.IsConflict(err):
			return nil, err
		}
		current, err := resource.Metadata().Get(ctx, m.Name, nil)
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, err
		case current.GetUID() != uid || current.GetLabels()[PartOfLabel] != r.id || len(current.GetOwnerReferences()) > 0:
			return nil, fmt.Errorf("it was changed meanwhile and is not deleted: it has a different UID or set, or an owner")
		}
		live = current
	}
	return nil, fmt.Errorf("it changes all the time (%d attempts)", maxDeletes)
}

// prunedTimeout limits the wait of a stage for the deletion of the stage before.
const prunedTimeout = time.Minute

// awaitPruned waits until a deleted object is gone.
func (r *run) awaitPruned(ctx context.Context, m *member) {
	if m.live == nil || m.kept != "" || r.options.DryRun || ctx.Err() != nil {
		return
	}
	if !r.isDelete {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, prunedTimeout)
		defer cancel()
	}
	if err := r.awaitDeleted(ctx, m); err != nil {
		r.add(m, Event{Object: m.Reference, Err: err})
	}
}

// awaitDeleted waits until the live object is gone.
func (r *run) awaitDeleted(ctx context.Context, m *member) error {
	if _, err := m.resource.Wait(ctx, m.Name, dynamic.Deleted(m.live.GetUID())); err != nil {
		return err
	}
	m.live = nil
	return nil
}
