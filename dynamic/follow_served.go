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
	"github.com/anykind/anykind/restmapper"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// notServedGrace is for how long a server must answer 404 before the resource counts as not served. One that starts,
	// or lags behind others of its cluster, does so for a moment. Its discovery is no better evidence: it is made from
	// the same informers.
	notServedGrace = 5 * time.Second
	// maxAbsenceDelay bounds the delay between requests while the resource is not served.
	maxAbsenceDelay = 2 * time.Second
	// definitionInterval is the minimum time between two reads of a CustomResourceDefinition.
	definitionInterval = 10 * time.Second
	// definitionTimeout bounds one of these reads.
	definitionTimeout = 10 * time.Second
)

// absence is a time in which every answer was 404. The zero value is none.
type absence struct {
	since  time.Time
	read   time.Time     // when the definition was read
	reason string        // why objects are kept
	served chan struct{} // receives when discovery finds the resource again
	cancel func()
}

// begin starts an absence of r unless one is under way.
func (a *absence) begin(ctx context.Context, r *Resource) {
	if !a.since.IsZero() {
		return
	}
	a.since = time.Now()
	if r.discovery == nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	changes, served := r.discovery.Changes(ctx), make(chan struct{}, 1)
	var done sync.WaitGroup
	done.Go(func() {
		for change := range changes {
			if isServedAgain(change, r.mapping.GVR) {
				select {
				case served <- struct{}{}:
				default:
				}
			}
		}
	})
	a.served, a.cancel = served, func() { cancel(); done.Wait() }
}

func isServedAgain(change discovery.Change, gvr schema.GroupVersionResource) bool {
	return change.After != nil && change.After.GVR == gvr
}

func (a *absence) end() {
	if a.since.IsZero() { // as it is before almost every event
		return
	}
	if a.cancel != nil {
		a.cancel()
	}
	*a = absence{}
}

// exceeded reports whether the absence has lasted longer than a starting server's.
func (a *absence) exceeded() bool { return !a.since.IsZero() && time.Since(a.since) >= notServedGrace }

// wait sleeps for d, or until discovery finds the resource again, which it reports.
func (a *absence) wait(ctx context.Context, d time.Duration) (served bool, err error) {
	if a.served == nil {
		return false, retry.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-a.served:
		return true, retry.ContextError(ctx)
	case <-timer.C:
		return false, retry.ContextError(ctx)
	case <-ctx.Done():
		return false, retry.ContextError(ctx)
	}
}

// definition is the CustomResourceDefinition of a resource, if it has one. An aggregated API has none, and where that
// is no longer served its objects may well exist. So a missing definition is evidence only if it was there before.
type definition struct {
	of      *Resource // the definitions; nil if the resource cannot be a custom one
	name    string
	existed atomic.Bool
	reading sync.WaitGroup
	begun   bool
}

func newDefinition(r *Resource) *definition {
	gvr := r.mapping.GVR
	if !strings.Contains(gvr.Group, ".") { // as the group of every custom resource does
		return &definition{}
	}
	group := schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}
	definitions := &Resource{conn: r.conn, mapping: &restmapper.Mapping{
		GVR: group.WithResource("customresourcedefinitions"), GVK: group.WithKind("CustomResourceDefinition"), Verbs: []string{"get"},
	}}
	return &definition{of: definitions.Metadata(), name: gvr.Resource + "." + gvr.Group}
}

// lookUp finds out in the background whether the definition exists, once.
func (d *definition) lookUp(ctx context.Context) {
	if d.of == nil || d.begun {
		return
	}
	d.begun = true
	d.reading.Go(func() {
		backoff := retry.Backoff{Min: time.Second, Max: time.Minute}
		for n := 1; ; n++ {
			err := d.get(ctx)
			if err == nil {
				d.existed.Store(true)
			}
			if err == nil || retry.IsRejected(err) || backoff.Wait(ctx, n) != nil {
				return
			}
		}
	})
}

func (d *definition) wait() { d.reading.Wait() }

// isDeleted reports whether the definition existed and the API server has none now. If not, reason says why what is known
// of the objects is kept.
func (d *definition) isDeleted(ctx context.Context) (deleted bool, reason string) {
	if d.of == nil {
		return false, "it is no custom resource"
	}
	err := d.get(ctx)
	switch {
	case err == nil:
		d.existed.Store(true)
		return false, "its CustomResourceDefinition exists"
	case !retry.IsObjectNotFound(err):
		return false, fmt.Sprintf("its CustomResourceDefinition cannot be read: %v", err)
	case !d.existed.Load():
		return false, "there is no CustomResourceDefinition, and none was seen before"
	default:
		return true, ""
	}
}

func (d *definition) get(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, definitionTimeout)
	defer cancel()
	_, err := d.of.Get(ctx, d.name, nil)
	return err
}
