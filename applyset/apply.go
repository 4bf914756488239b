package applyset

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// ApplyOptions configure [Set.Apply] and [Set.Delete].
type ApplyOptions struct {
	// Conflicts is the policy for fields with a different owner.
	Conflicts ConflictPolicy
	// NoPrune keeps the members that are not among the objects. They stay members.
	NoPrune bool
	// PruneShared deletes Namespaces with objects of others, and CustomResourceDefinitions with objects of others. By default
	// they are kept.
	PruneShared bool
	// DryRun writes nothing. The server checks every object that it can check.
	DryRun bool
	// BeforeApply is called right before an object is applied, with the lock of the set: it may delete the object, so that the apply
	// creates it. A returned resourceVersion is the precondition of the apply: if the object has a different one, BeforeApply is called
	// again. Its error is the error of the object. Calls are concurrent. A dry run does not call it.
	BeforeApply func(ctx context.Context, object Reference) (resourceVersion string, err error)
	// CheckPrune is called for each member to delete, before the first write. Apply deletes no further members, and writes nothing after
	// an error. live is read-only. CheckPrune is called again if the set is read again.
	CheckPrune func(object Reference, live *unstructured.Object) error
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
	r := &run{Set: s, options: valueOf(opts)}
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

func (r *run) apply(ctx context.Context, objects []*manifest.Object) error {
	var err error
	if r.desired, err = r.desire(ctx, objects); err != nil {
		return err
	}
	if ctx, err = r.begin(ctx, r.readParent, r.readSet); err != nil {
		return err
	}
	r.applyStages(ctx)
	if len(r.errs) == 0 && ctx.Err() == nil {
		r.prune(ctx)
	}
	return r.end(ctx)
}

// readSet reads the members for Apply and Delete.
func (r *run) readSet(ctx context.Context) (added scope, hasWrites bool, err error) {
	if r.left, err = r.readMembers(ctx, r.record.recorded, r.desired); err != nil {
		return scope{}, false, err
	}
	if err := r.checkPrunes(ctx); err != nil {
		return scope{}, false, err
	}
	return r.desired.scope, !r.isUpToDate(), nil
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
		if r.options.DryRun && dependency.live == nil {
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
	if m.live != nil && m.live.GetDeletionTimestamp() != nil && !r.options.DryRun {
		if event.Err = r.awaitDeleted(ctx, m); event.Err != nil {
			return event
		}
		before = nil
	}
	event.Live, event.Reason, event.Err = r.checkAndSend(ctx, m)
	if event.Err == nil && event.Live.GetDeletionTimestamp() != nil && !r.options.DryRun { // it was no member, or was deleted meanwhile
		m.live = event.Live
		if event.Err = r.awaitDeleted(ctx, m); event.Err != nil {
			return event
		}
		before = nil
		event.Live, event.Reason, event.Err = r.send(ctx, m, "")
	}
	if before != nil && event.Err == nil && before.GetUID() != event.Live.GetUID() {
		before = nil // BeforeApply has deleted it
	}
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
	if r.options.DryRun {
		return equal(before.Object, after.Object)
	}
	return before.GetResourceVersion() == after.GetResourceVersion()
}

// isNew reports whether the only write of an object was an apply, right at its creation. An adopted object is older.
func isNew(obj *unstructured.Object) bool {
	entries := obj.GetManagedFields()
	return len(entries) == 1 && (entries[0].Time == nil || entries[0].Time.Sub(obj.GetCreationTimestamp().Time) <= time.Second)
}

// awaitReady waits until a dependency of further objects is ready.
func (r *run) awaitReady(ctx context.Context, m *member) error {
	switch {
	case m.failed:
		return errors.New("it was not applied")
	case r.options.DryRun:
		return nil
	case m.Kind == namespaceKind:
		return r.awaitServiceAccount(ctx, m)
	case m.resource.Readiness(m.live, r.opts.Rules...).Status == readiness.Current:
		return nil
	}
	_, err := m.resource.Wait(ctx, m.Name, dynamic.Ready(r.opts.Rules...))
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
	return contextError(ctx)
}

const serviceAccountTimeout = 10 * time.Second
