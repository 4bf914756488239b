package reflector

import (
	"context"
	"time"

	"github.com/anykind/anykind/internal/retry"
)

const (
	// notServedGrace is the duration of 404 responses before the resource counts as not served. A starting or lagging server
	// responds with 404 for a moment. Its discovery is no better evidence: both depend on the same informers.
	notServedGrace = 5 * time.Second
	// minEvidenceInterval is the minimum time between two calls of Evidence.AreObjectsGone.
	minEvidenceInterval = 10 * time.Second
)

// Evidence is further knowledge of a resource that is not served.
type Evidence interface {
	// Listed is called after each complete list.
	Listed()
	// Served is called at the start of a period of 404. Its channel receives when the resource may be served again. stop ends it.
	Served(ctx context.Context) (served <-chan struct{}, stop func())
	// AreObjectsGone reports whether the objects of the resource are known not to exist any more.
	AreObjectsGone() bool
}

// handleNotServed emits NotServed once. If the objects are known to be gone, it then emits their deletion.
func (r *Reflector[T]) handleNotServed() error {
	if r.state != notServed { // 404 may return after another error
		r.version = ""
		r.state = notServed
		if err := r.emitMarker(Event[T]{Type: NotServed}); err != nil {
			return err
		}
	}
	if r.Evidence == nil || !r.hasKnown() || time.Since(r.unserved.evidenceRead) < minEvidenceInterval {
		return nil
	}
	r.unserved.evidenceRead = time.Now()
	if !r.Evidence.AreObjectsGone() {
		return nil
	}
	r.beginRelist()
	return r.deleteMissing()
}

// unservedPeriod is a period of only 404 responses. The zero value means no period.
type unservedPeriod struct {
	since        time.Time
	evidenceRead time.Time
	served       <-chan struct{} // of Evidence; nil outside of a period
	stop         func()
}

func (u *unservedPeriod) begin(ctx context.Context, evidence Evidence) {
	if !u.since.IsZero() {
		return
	}
	u.since = time.Now()
	u.stop = func() {}
	if evidence != nil {
		u.served, u.stop = evidence.Served(ctx)
	}
}

func (u *unservedPeriod) end() {
	if u.since.IsZero() { // the common case
		return
	}
	u.stop()
	*u = unservedPeriod{}
}

// exceedsGrace reports whether the period has lasted notServedGrace.
func (u *unservedPeriod) exceedsGrace() bool {
	return !u.since.IsZero() && time.Since(u.since) >= notServedGrace
}

// wait waits for d, or until the resource is served again. isServed reports the latter.
func (u *unservedPeriod) wait(ctx context.Context, d time.Duration) (isServed bool, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-u.served:
		isServed = true
	case <-timer.C:
	case <-ctx.Done():
	}
	return isServed, retry.ContextError(ctx)
}
