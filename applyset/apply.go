package applyset

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// ConflictPolicy decides about applied fields with a different owner and a different value.
type ConflictPolicy int

const (
	// ConflictFail reports an error for the object, a *dynamic.ApplyConflictError.
	ConflictFail ConflictPolicy = iota
	// ConflictForce takes the fields over.
	ConflictForce
	// ConflictLeaveOut leaves the fields to their owners. Event.Reason lists them.
	ConflictLeaveOut
)

// ApplyOptions configure [Set.Apply] and [Set.Delete].
type ApplyOptions struct {
	// Conflicts is the policy for fields with a different owner.
	Conflicts ConflictPolicy
	// KeepLeft keeps the objects that left the set. They stay members.
	KeepLeft bool
	// PruneShared deletes Namespaces with objects of others, and CustomResourceDefinitions with objects of others. By default
	// they are kept.
	PruneShared bool
	// DryRun writes nothing. The server checks every object that it can check.
	DryRun bool
	// OnEvent is called after every object. Calls are serialized.
	OnEvent func(Event)
}

// Apply makes the cluster's objects of the set equal to objects, by server-side apply, and deletes the members that are not among
// objects. It returns an event for each object, in the order of the work, also together with an error.
//
// The errors of single objects are joined, each as an [*ObjectError]. Nothing is deleted after such an error. Objects without a
// name, duplicates and unknown kinds are errors before the first write.
//
// ctx bounds the whole call, including the waits for dependencies and for objects that are still being deleted. After an error,
// also after the end of the process, a further Apply continues.
func (s *Set) Apply(ctx context.Context, objects []*manifest.Object, opts *ApplyOptions) ([]Event, error) {
	r := &run{Set: s, opts: valueOf(opts)}
	err := r.apply(ctx, objects)
	if err != nil {
		err = fmt.Errorf("apply the set of %s: %w", s.parent, err)
	}
	return r.events, err
}

func valueOf[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

// run is a call of Apply or Delete.
type run struct {
	*Set
	opts     ApplyOptions
	isDelete bool

	parent  *parentState
	desired *desired
	left    []*member // of the set, but not desired
	lock    *lock     // nil in a dry run

	mu       sync.Mutex
	events   []Event
	errs     []error
	awaiting map[*member]func() error // waits for dependencies, each once
}

func (r *run) apply(ctx context.Context, objects []*manifest.Object) error {
	var err error
	if r.desired, err = r.desire(ctx, objects); err != nil {
		return err
	}
	if err := r.ensureParentNamespace(ctx); err != nil {
		return err
	}
	ctx, err = r.begin(ctx)
	if err != nil {
		return err
	}
	r.applyStages(ctx)
	if len(r.errs) == 0 && ctx.Err() == nil {
		r.prune(ctx)
	}
	return r.end(ctx)
}

// maxReads limits the repeated reads of a set whose parent changes without a run.
const maxReads = 5

// begin reads the set and takes the lock, unless there is nothing to write. The returned context ends when the lock is lost.
func (r *run) begin(ctx context.Context) (context.Context, error) {
	parent, err := r.readParent(ctx)
	if err != nil {
		return ctx, err
	}
	for range maxReads {
		if !r.opts.DryRun {
			if parent, err = r.awaitLock(ctx, parent); err != nil {
				return ctx, err
			}
		}
		r.parent = parent
		if r.left, err = r.readMembers(ctx, parent.recorded, r.desired); err != nil {
			return ctx, err
		}
		if err := r.checkLeft(ctx); err != nil {
			return ctx, err
		}
		if r.opts.DryRun || r.isUpToDate() {
			return ctx, nil
		}
		locked, lock, err := r.acquire(ctx, parent, parent.recorded.union(r.desired.scope))
		if err == nil {
			r.lock = lock
			return locked, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return ctx, err
		}
		before := parent.lock
		if parent, err = r.readParent(ctx); err != nil {
			return ctx, err
		}
		if err := sameRun(before, parent.lock); err != nil {
			return ctx, err
		}
	}
	return ctx, fmt.Errorf("the parent changes all the time (%d reads)", maxReads)
}

// isUpToDate reports whether the run has nothing to write.
func (r *run) isUpToDate() bool {
	if r.isDelete || r.parent.object == nil || r.parent.lock.isHeld() || !r.parent.recorded.equal(r.finalScope()) {
		return false
	}
	for _, m := range r.desired.members {
		if m.live == nil || m.live.GetDeletionTimestamp() != nil || len(m.drifts) > 0 {
			return false
		}
	}
	for _, m := range r.left {
		if m.live.GetDeletionTimestamp() == nil && m.kept == "" {
			return false
		}
	}
	return true
}

// finalScope is the scope of the objects and of the remaining members.
func (r *run) finalScope() scope {
	all := newScope().union(r.desired.scope)
	for _, m := range r.left {
		if m.live != nil {
			all.add(m.Reference)
		}
	}
	if r.parent.object != nil && r.Set.parent.Namespace != "" {
		all.namespaces[r.Set.parent.Namespace] = true // implied by the record
	}
	return all
}

// end releases the lock and returns the errors of the run.
func (r *run) end(ctx context.Context) error {
	errs := r.errs
	if ctx.Err() != nil {
		errs = append(errs, context.Cause(ctx))
	}
	if r.lock == nil {
		return errors.Join(errs...)
	}
	defer r.lock.cancel(nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Set.opts.LockDuration/3) // also after the end of ctx
	defer cancel()
	final := r.lock.recorded
	if len(errs) == 0 {
		final = r.finalScope()
	}
	err := r.lock.release(ctx, final)
	if err == nil && len(errs) == 0 && r.isDelete && len(final.kinds) == 0 {
		err = r.deleteParent(ctx, r.lock.resourceVersion)
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("update the parent: %w", err))
	}
	return errors.Join(errs...)
}

// ensureParentNamespace creates the parent's namespace if it is one of the objects. The parent must exist before its members.
func (r *run) ensureParentNamespace(ctx context.Context) error {
	ref := Reference{Kind: namespaceKind, Name: r.Set.parent.Namespace}
	m := r.desired.members[ref]
	if m == nil || r.opts.DryRun {
		return nil
	}
	_, err := m.resource.Metadata().Get(ctx, m.Name, nil)
	if !apierrors.IsNotFound(err) {
		return err
	}
	_, err = m.resource.Apply(ctx, m.want, nil)
	return err
}

// applyStages applies all objects with a difference.
func (r *run) applyStages(ctx context.Context) {
	r.awaiting = map[*member]func() error{}
	for _, m := range r.desired.members {
		r.awaiting[m] = sync.OnceValue(func() error { return r.awaitReady(ctx, m) })
	}
	for _, stage := range r.desired.stages {
		r.parallel(len(stage), func(i int) {
			if ctx.Err() != nil {
				stage[i].failed = true
				return
			}
			r.add(stage[i], r.applyMember(ctx, stage[i]))
		})
	}
}

// add records and reports an event of a member.
func (r *run) add(m *member, event Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if event.Err != nil {
		event.Action = Failed
		event.Err = &ObjectError{Object: m.Reference, Position: m.position, Err: event.Err}
		r.errs = append(r.errs, event.Err)
	}
	r.events = append(r.events, event)
	if r.opts.OnEvent != nil {
		r.opts.OnEvent(event)
	}
}

func (r *run) applyMember(ctx context.Context, m *member) Event {
	event := Event{Object: m.Reference}
	if m.live != nil && m.live.GetDeletionTimestamp() == nil && len(m.drifts) == 0 {
		event.Action = Unchanged
		event.Live = m.live
		return event
	}
	event = r.applyChanged(ctx, m, event)
	m.failed = event.Err != nil
	if event.Live != nil {
		m.live = event.Live
	}
	return event
}

func (r *run) applyChanged(ctx context.Context, m *member, event Event) Event {
	for _, dependency := range m.dependencies {
		if r.opts.DryRun && dependency.live == nil {
			event.Action = NotChecked
			event.Reason = fmt.Sprintf("it needs %s, which does not exist yet", dependency.Reference)
			return event
		}
		if event.Err = r.awaiting[dependency](); event.Err != nil {
			event.Err = fmt.Errorf("its dependency %s: %w", dependency.Reference, event.Err)
			return event
		}
	}
	if m.resource == nil {
		resource, err := r.client.ForKind(ctx, m.want.GroupVersionKind())
		if event.Err = err; err != nil {
			return event
		}
		m.setResource(resource)
	}
	before := m.live
	if m.live != nil && m.live.GetDeletionTimestamp() != nil && !r.opts.DryRun {
		if event.Err = r.awaitDeleted(ctx, m); event.Err != nil {
			return event
		}
		before = nil
	}
	event.Live, event.Reason, event.Err = r.send(ctx, m)
	switch {
	case before == nil && event.Err == nil && isNew(event.Live):
		event.Action = Created
	case before != nil && event.Err == nil && r.isSame(before, event.Live):
		event.Action = Unchanged
	default:
		event.Action = Configured
	}
	return event
}

// isSame reports whether an apply changed nothing. The result of a dry run has the resourceVersion of the stored object.
func (r *run) isSame(before, after *unstructured.Object) bool {
	if r.opts.DryRun {
		return equal(before.Object, after.Object)
	}
	return before.GetResourceVersion() == after.GetResourceVersion()
}

// isNew reports whether the only write of an object was an apply, right at its creation. An adopted object is older.
func isNew(obj *unstructured.Object) bool {
	entries := obj.GetManagedFields()
	return len(entries) == 1 && (entries[0].Time == nil || entries[0].Time.Sub(obj.GetCreationTimestamp().Time) <= time.Second)
}

// send applies an object by the policy for conflicts.
func (r *run) send(ctx context.Context, m *member) (live *unstructured.Object, leftOut string, err error) {
	resource := m.resource
	if r.opts.DryRun {
		resource = resource.WithDefaults(&dynamic.Defaults{DryRun: true})
	} else if err := r.lock.check(ctx); err != nil {
		return nil, "", err
	}
	live, err = resource.Apply(ctx, m.want, nil)
	var conflict *dynamic.ApplyConflictError
	if !errors.As(err, &conflict) {
		return live, "", err
	}
	if owned := r.ownedError(ctx, m, conflict); owned != nil {
		return nil, "", owned
	}
	switch r.opts.Conflicts {
	case ConflictForce:
		live, err = resource.Apply(ctx, m.want, &metav1.ApplyOptions{Force: true})
		return live, "", err
	case ConflictLeaveOut:
		reduced, fields, reduceErr := leaveOut(m.want, conflict)
		if reduceErr != nil {
			return nil, "", errors.Join(err, reduceErr)
		}
		live, err = resource.Apply(ctx, reduced, nil)
		return live, "left out " + strings.Join(fields, ", "), err
	case ConflictFail:
	}
	return nil, "", err
}

// partOfField is the label of members in conflicts.
const partOfField = ".metadata.labels." + PartOfLabel

// ownedError returns an [*OwnedError] if the object has the label of a different set.
func (r *run) ownedError(ctx context.Context, m *member, conflict *dynamic.ApplyConflictError) error {
	for _, field := range conflict.Conflicts {
		if field.Field != partOfField {
			continue
		}
		current, err := m.resource.Metadata().Get(ctx, m.Name, nil)
		if err != nil {
			return err
		}
		if id := current.GetLabels()[PartOfLabel]; id != "" && id != r.id {
			return &OwnedError{ID: id, Manager: field.Manager}
		}
	}
	return nil
}

// leaveOut returns a copy of obj without the conflicting fields, and their names.
func leaveOut(obj *unstructured.Object, conflict *dynamic.ApplyConflictError) (*unstructured.Object, []string, error) {
	reduced := obj.DeepCopy()
	var fields []string
	for _, field := range conflict.Conflicts {
		if !deleteField(reduced.Object, field.Field) {
			return nil, nil, fmt.Errorf("%s cannot be left out", field.Field)
		}
		fields = append(fields, field.String())
	}
	return reduced, fields, nil
}

// awaitReady waits until a dependency of further objects is ready.
func (r *run) awaitReady(ctx context.Context, m *member) error {
	switch {
	case m.failed:
		return errors.New("it was not applied")
	case r.opts.DryRun:
		return nil
	case m.Kind == namespaceKind:
		return r.awaitServiceAccount(ctx, m)
	case m.resource.Readiness(m.live, r.Set.opts.Rules...).Status == readiness.Current:
		return nil
	}
	_, err := m.resource.Wait(ctx, m.Name, dynamic.Ready(r.Set.opts.Rules...))
	return err
}

// awaitServiceAccount waits for the default service account of a namespace with pods among the objects: the API server rejects
// pods until a controller has created it. It returns nil after serviceAccountTimeout: the pod may name a different account.
func (r *run) awaitServiceAccount(ctx context.Context, namespace *member) error {
	hasPods := false
	for ref := range r.desired.members {
		hasPods = hasPods || ref.Namespace == namespace.Name && ref.Kind.String() == "Pod"
	}
	if !hasPods {
		return nil
	}
	accounts, err := r.client.ForKind(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"})
	if err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, serviceAccountTimeout)
	defer cancel()
	_, _ = accounts.Namespace(namespace.Name).Metadata().Wait(wait, "default", dynamic.Exists()) // the API server reports a missing account
	return context.Cause(ctx)
}

const serviceAccountTimeout = 10 * time.Second
