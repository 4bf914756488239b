package applyset

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
)

// run is a call of Apply, Delete, Adopt or Handover.
type run struct {
	*Set
	options  ApplyOptions
	isDelete bool

	record  *parentState // the parent as read
	desired *desired
	left    []*member             // of the set, but not desired
	byUID   map[types.UID]*member // the objects to apply; see desiredByUID
	lock    *lock                 // nil in a dry run

	mu       sync.Mutex
	events   []Event
	errs     []error
	awaiting map[*member]func() error // waits for dependencies, each once
}

// maxReads limits the repeated reads of a set whose parent changes without a run.
const maxReads = 5

// begin reads the parent by read and takes the lock, unless prepare reports that there is nothing to write. prepare reads the set of
// r.record. It returns the scope of the new members. The returned context ends when the lock is lost.
func (r *run) begin(ctx context.Context, read func(context.Context) (*parentState, error),
	prepare func(context.Context) (added scope, hasWrites bool, err error),
) (context.Context, error) {
	parent, err := read(ctx)
	if err != nil {
		return ctx, err
	}
	for range maxReads {
		if !r.options.DryRun {
			if parent, err = r.awaitLock(ctx, parent); err != nil {
				return ctx, err
			}
		}
		r.record = parent
		added, hasWrites, err := prepare(ctx)
		if err != nil || r.options.DryRun || !hasWrites {
			return ctx, err
		}
		if err := r.ensureParentNamespace(ctx); err != nil {
			return ctx, err
		}
		locked, lock, err := r.acquire(ctx, parent, parent.recorded.union(added))
		if err == nil {
			r.lock = lock
			return locked, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return ctx, err
		}
		before := parent.lock
		if parent, err = read(ctx); err != nil {
			return ctx, err
		}
		if err := otherRun(before, parent.lock); err != nil {
			return ctx, err
		}
	}
	return ctx, fmt.Errorf("the parent changes all the time (%d reads)", maxReads)
}

// isUpToDate reports whether the run has nothing to write.
func (r *run) isUpToDate() bool {
	if r.isDelete || r.record.object == nil || r.record.lock.isHeld() || !r.record.recorded.equal(r.finalScope()) {
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
	if r.record.object != nil && r.parent.Namespace != "" {
		all.namespaces[r.parent.Namespace] = true // implied by the record
	}
	return all
}

// end releases the lock and returns the errors of the run.
func (r *run) end(ctx context.Context) error {
	errs := r.errs
	if ctx.Err() != nil {
		errs = append(errs, contextError(ctx))
	}
	if r.lock == nil {
		return errors.Join(errs...)
	}
	defer r.lock.cancel(nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.opts.LockDuration/3) // also after the end of ctx
	defer cancel()
	final := r.lock.recorded
	if len(errs) == 0 {
		final = r.finalScope()
	}
	err := r.lock.release(ctx, final)
	if err == nil && !r.lock.isGone.Load() && len(errs) == 0 && r.isDelete && len(final.kinds) == 0 {
		err = r.deleteParent(ctx, r.lock.resourceVersion)
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("update the parent: %w", err))
	}
	return errors.Join(errs...)
}

// ensureParentNamespace creates the parent's namespace if it is one of the objects. The parent must exist before its members.
func (r *run) ensureParentNamespace(ctx context.Context) error {
	ref := Reference{Kind: namespaceKind, Name: r.parent.Namespace}
	m := r.desired.members[ref]
	if m == nil || r.options.DryRun {
		return nil
	}
	_, err := m.resource.Metadata().Get(ctx, m.Name, nil)
	if !apierrors.IsNotFound(err) {
		return err
	}
	_, err = m.resource.Apply(ctx, m.want, nil)
	return err
}

// writer returns the handle for a write: of a dry run, or after a check of the lock.
func (r *run) writer(ctx context.Context, resource *dynamic.Resource) (*dynamic.Resource, error) {
	if r.options.DryRun {
		return resource.WithDefaults(&dynamic.Defaults{DryRun: true}), nil
	}
	return resource, r.lock.check(ctx)
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
	if r.options.OnEvent != nil {
		r.options.OnEvent(event)
	}
}
