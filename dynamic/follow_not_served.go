package dynamic

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/retry"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// notServedGrace is how long a server must answer 404 before the resource counts as not served. A server that starts, or
	// is behind others of its cluster, answers 404 for a moment. Its discovery is no better evidence: both depend on the
	// same informers.
	notServedGrace = 5 * time.Second
	// maxNotServedDelay bounds the delay between requests while the resource is not served.
	maxNotServedDelay = 2 * time.Second
	// minDefinitionInterval is the minimum time between two reads of a CustomResourceDefinition.
	minDefinitionInterval = 10 * time.Second
	// definitionTimeout bounds one of these reads.
	definitionTimeout = 10 * time.Second
)

// handleNotServed emits NotServed, once, and then the deletion of all objects if their definition is known to be deleted.
func (f *reflector) handleNotServed() error {
	if f.state != stateNotServed { // 404 may return after another error
		f.version, f.state = "", stateNotServed
		if err := f.emit(NotServed, nil, false); err != nil {
			return err
		}
	}
	if !f.hasKnown() || time.Since(f.unserved.definitionRead) < minDefinitionInterval {
		return nil
	}
	f.unserved.definitionRead = time.Now()
	if f.unserved.keepReason = f.definition.reasonToKeep(); f.unserved.keepReason != "" {
		return nil
	}
	f.beginRelist()
	return f.deleteMissing()
}

func (f *reflector) notServedError(err error) error {
	if f.hasKnown() {
		return fmt.Errorf("follow %s: not served, its objects are kept: %w (%s)", f.resource, err, f.unserved.keepReason)
	}
	return fmt.Errorf("follow %s: not served: %w", f.resource, err)
}

// unservedPeriod is a time in which every response was 404. The zero value is none.
type unservedPeriod struct {
	since          time.Time
	definitionRead time.Time
	keepReason     string        // why objects are not deleted
	served         chan struct{} // receives when discovery finds the resource again; nil while there is no period
	stopWatching   func()
}

func (u *unservedPeriod) begin(ctx context.Context, r *Resource) {
	if !u.since.IsZero() {
		return
	}
	u.since = time.Now()
	ctx, cancel := context.WithCancel(ctx)
	changes, served := r.discovery.Changes(ctx), make(chan struct{}, 1)
	var done sync.WaitGroup
	done.Go(func() {
		for change := range changes {
			if change.New != nil && change.New.GVR == r.mapping.GVR {
				select {
				case served <- struct{}{}:
				default:
				}
			}
		}
	})
	u.served, u.stopWatching = served, func() { cancel(); done.Wait() }
}

func (u *unservedPeriod) end() {
	if u.since.IsZero() { // as before almost every event
		return
	}
	u.stopWatching()
	*u = unservedPeriod{}
}

// exceedsGrace reports whether the period is longer than that of a starting server.
func (u *unservedPeriod) exceedsGrace() bool {
	return !u.since.IsZero() && time.Since(u.since) >= notServedGrace
}

// wait waits for d, or until discovery finds the resource again, which it reports.
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

// definition is the CustomResourceDefinition of a resource, if it has one. An aggregated API has none, and when it is not
// served, its objects may well exist. So a missing definition is evidence only if it existed before.
type definition struct {
	get         func() error // reads it; nil if the resource cannot be a custom one
	startLookup func()       // reads it in the background, once, to record whether it exists
	lookup      sync.WaitGroup
	existed     atomic.Bool
}

// newDefinition returns the definition of a resource, whose requests end with ctx.
func newDefinition(ctx context.Context, r *Resource) *definition {
	d := &definition{startLookup: func() {}}
	gvr := r.mapping.GVR
	if !strings.Contains(gvr.Group, ".") { // as the group of every custom resource does
		return d
	}
	group := schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}
	definitions := (&Resource{conn: r.conn, mapping: &discovery.Resource{
		GVR: group.WithResource("customresourcedefinitions"), GVK: group.WithKind("CustomResourceDefinition"), Verbs: []string{"get"},
	}}).Metadata()
	d.get = func() error {
		ctx, cancel := context.WithTimeout(ctx, definitionTimeout)
		defer cancel()
		_, err := definitions.Get(ctx, gvr.Resource+"."+gvr.Group, nil)
		if err == nil {
			d.existed.Store(true)
		}
		return err
	}
	d.startLookup = sync.OnceFunc(func() {
		d.lookup.Go(func() {
			backoff := retry.Backoff{Min: time.Second, Max: time.Minute}
			for n := 1; ; n++ {
				if err := d.get(); err == nil || retry.IsRejected(err) || backoff.Wait(ctx, n) != nil {
					return
				}
			}
		})
	})
	return d
}

// reasonToKeep returns "" if the definition existed and has been deleted, and otherwise why the objects of a resource that
// is not served must be kept.
func (d *definition) reasonToKeep() string {
	if d.get == nil {
		return "it is not a custom resource"
	}
	switch err := d.get(); {
	case err == nil:
		return "its CustomResourceDefinition exists"
	case !retry.IsObjectNotFound(err):
		return fmt.Sprintf("its CustomResourceDefinition cannot be read: %v", err)
	case !d.existed.Load():
		return "there is no CustomResourceDefinition, and none was seen before"
	default:
		return ""
	}
}
