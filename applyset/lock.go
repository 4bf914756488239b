package applyset

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/fence"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

// lockRecord is the value of lockAnnotation.
type lockRecord struct {
	Holder string `json:"holder"`
	// ID is random for each run.
	ID string `json:"id"`
	// Duration is the holder's Options.LockDuration, such as "15s".
	Duration metav1.Duration `json:"duration"`
	// Renewed is the time of the last renewal by the clock of the holder, for people.
	Renewed string `json:"renewed"`
	// Renewals counts the renewals. A waiting process observes that it changes.
	Renewals int `json:"renewals"`
	// Released is set at the end of the run: the record then names the last run.
	Released bool `json:"released,omitempty"`
}

func (r *lockRecord) isHeld() bool { return r != nil && !r.Released }

// LockedError reports that a different run of the same set writes at the same time, or has taken over the lock.
type LockedError struct {
	// Holder is the holder of the lock: Options.Holder of the run. Renewed is the last renewal by the holder's clock, in RFC 3339.
	Holder, Renewed string
	lost            bool
}

func (e *LockedError) Error() string {
	if e.lost {
		return fmt.Sprintf("the lock of the set was taken over by %q at %s: this run did not renew it in time", e.Holder, e.Renewed)
	}
	return fmt.Sprintf("a different run of the set writes at the same time: %q, seen at %s (run again after it)", e.Holder, e.Renewed)
}

// lockEnd is the cause of a run's ctx that has ended with its lock.
type lockEnd struct{ error }

func (e lockEnd) Unwrap() error { return e.error }

// contextError returns the loss of the lock, or the error of the caller's ctx with its cause. It is nil while ctx is active.
func contextError(ctx context.Context) error {
	var lost lockEnd
	if errors.As(context.Cause(ctx), &lost) {
		return lost.error
	}
	return retry.ContextError(ctx)
}

func defaultHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return host + "/" + strconv.Itoa(os.Getpid())
}

// lock is the held lock of a run. Its methods may be called by the run and by the renewal at once.
type lock struct {
	set      *Set
	cancel   context.CancelCauseFunc // ends the context of the run
	deadline *fence.Deadline         // of writes, before the lock expires

	mu              sync.Mutex
	record          lockRecord
	recorded        scope
	resourceVersion string
	// endsWithNamespace is set before the deletion of the parent's Namespace. isGone is set once the parent is gone with it.
	endsWithNamespace bool
	isGone            atomic.Bool

	stop    context.CancelFunc
	stopped chan struct{}
}

// acquire writes the lock and the scope into the parent as it was read. If the parent was changed meanwhile, apierrors.IsConflict
// or IsAlreadyExists holds for the error. The returned context ends when the lock is lost. Its requests are sent only before the deadline.
func (s *Set) acquire(ctx context.Context, parent *parentState, recorded scope) (context.Context, *lock, error) {
	l := &lock{set: s, recorded: recorded, stopped: make(chan struct{}), deadline: fence.NewDeadline(s.opts.LockDuration * 2 / 3), record: lockRecord{
		Holder: s.opts.Holder, ID: rand.Text(), Duration: metav1.Duration{Duration: s.opts.LockDuration},
	}}
	if parent.object != nil {
		l.resourceVersion = parent.object.GetResourceVersion()
	}
	if err := l.write(ctx); err != nil {
		return ctx, nil, err
	}
	ctx, l.cancel = context.WithCancelCause(ctx)
	renewal, stop := context.WithCancel(ctx)
	l.stop = stop
	go l.renew(renewal)
	return fence.WithCheck(ctx, l.checkDeadline), l, nil
}

// write writes the record with the next number of renewals. The caller holds mu, unless nobody else has the lock.
func (l *lock) write(ctx context.Context) error {
	next := l.record
	next.Renewals++
	at := time.Now()
	next.Renewed = at.UTC().Format(time.RFC3339)
	write := l.set.createParent
	if l.resourceVersion != "" {
		write = func(ctx context.Context, recorded scope, record *lockRecord) (*unstructured.Object, error) {
			return l.set.updateParent(ctx, l.resourceVersion, recorded, record)
		}
	}
	written, err := write(ctx, l.recorded, &next)
	if err != nil {
		return err
	}
	l.resourceVersion = written.GetResourceVersion()
	l.record = next
	l.deadline.Renew(at)
	return nil
}

// renew renews the lock until ctx ends. It cancels the run if the lock is lost.
func (l *lock) renew(ctx context.Context) {
	defer close(l.stopped)
	ticker := time.NewTicker(l.set.opts.LockDuration / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := l.renewOnce(ctx); err != nil {
			l.cancel(lockEnd{err})
			return
		}
	}
}

// renewOnce returns an error if the lock is lost. An error of a single request is retried at the next tick.
func (l *lock) renewOnce(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isGone.Load() {
		return nil
	}
	request, cancel := context.WithTimeout(ctx, l.set.opts.LockDuration/3)
	defer cancel()
	err := l.write(request)
	if apierrors.IsConflict(err) {
		err = l.reread(request)
	}
	err = l.permitGone(err)
	var lost *LockedError
	switch {
	case err == nil || ctx.Err() != nil:
		return nil
	case errors.As(err, &lost) || apierrors.IsNotFound(err):
		return err
	default:
		return l.expired(err)
	}
}

// expired returns an error if the lock has not been renewed in time.
func (l *lock) expired(cause error) error {
	if l.isGone.Load() || l.deadline.Remaining() > 0 {
		return nil
	}
	return fmt.Errorf("the lock of the set could not be renewed for %s: %w", l.set.opts.LockDuration*2/3, cmp.Or(cause, context.DeadlineExceeded))
}

// checkDeadline returns an error for a request of the run after the deadline, except for the release.
func (l *lock) checkDeadline() error {
	select {
	case <-l.stopped:
		return nil
	default:
		return l.expired(nil)
	}
}

// reread renews the lock after a change of the parent by others.
func (l *lock) reread(ctx context.Context) error {
	parent, err := l.set.readParent(ctx)
	if err != nil {
		return err
	}
	if parent.object == nil && l.endsWithNamespace {
		l.isGone.Store(true)
		return nil
	}
	if parent.lock == nil || parent.lock.ID != l.record.ID {
		return lostError(parent.lock)
	}
	l.resourceVersion = parent.object.GetResourceVersion()
	return l.write(ctx)
}

// endWithNamespace is called before the deletion of the parent's Namespace: the parent is deleted with it.
func (l *lock) endWithNamespace() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endsWithNamespace = true
}

// permitGone returns nil if the parent was deleted with its Namespace: the lock is released. The rights may be deleted before the parent.
func (l *lock) permitGone(err error) error {
	if l.endsWithNamespace && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)) {
		l.isGone.Store(true)
		return nil
	}
	return err
}

func lostError(holder *lockRecord) *LockedError {
	lost := &LockedError{lost: true}
	if holder != nil {
		lost.Holder = holder.Holder
		lost.Renewed = holder.Renewed
	}
	return lost
}

// check returns an error if the lock may have expired. It is called before every write of the run.
func (l *lock) check(ctx context.Context) error {
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	return l.expired(nil)
}

// release ends the renewal and writes the scope with the released lock, unless the parent is gone with its Namespace.
func (l *lock) release(ctx context.Context, recorded scope) error {
	l.stop()
	<-l.stopped
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isGone.Load() {
		return nil
	}
	l.recorded = recorded
	l.record.Released = true
	err := l.write(ctx)
	if apierrors.IsConflict(err) {
		err = l.reread(ctx)
	}
	return l.permitGone(err)
}

// handOver ends the renewal and lets release write the tooling of a different tool.
func (l *lock) handOver(tooling string) {
	l.stop()
	<-l.stopped
	handed := *l.set
	handed.tooling = tooling
	l.set = &handed
}

// awaitLock returns the parent once its lock can be taken over: it is released, or has not been renewed for its duration. It returns
// a [*LockedError] as soon as the holder lives: it releases the lock, or renews it twice. A single renewal can be the last request of a
// process that has ended.
func (s *Set) awaitLock(ctx context.Context, parent *parentState) (*parentState, error) {
	seen := parent.lock
	if !seen.isHeld() {
		return parent, nil
	}
	renewals := 0
	deadline := time.Now().Add(seen.Duration.Duration)
	for parent.lock.isHeld() {
		wait := min(time.Until(deadline), seen.Duration.Duration/6)
		if wait <= 0 {
			return parent, nil
		}
		select {
		case <-ctx.Done():
			return nil, contextError(ctx)
		case <-time.After(wait):
		}
		var err error
		if parent, err = s.readParent(ctx); err != nil {
			return nil, err
		}
		if err := otherRun(seen, parent.lock); err != nil {
			return nil, err
		}
		if parent.lock != nil && *parent.lock != *seen {
			if renewals++; renewals > 1 {
				return nil, &LockedError{Holder: parent.lock.Holder, Renewed: parent.lock.Renewed}
			}
			seen = parent.lock
			deadline = time.Now().Add(seen.Duration.Duration)
		}
	}
	return parent, nil
}

// otherRun returns a [*LockedError] if a run has taken or released the lock since it was read.
func otherRun(before, now *lockRecord) error {
	if now == nil || before != nil && before.ID == now.ID && before.Released == now.Released {
		return nil
	}
	return &LockedError{Holder: now.Holder, Renewed: now.Renewed}
}
