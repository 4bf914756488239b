package dynamic

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/retry"
)

const (
	// notServedGrace is the duration of 404 responses before the resource counts as not served. A starting or lagging server
	// responds with 404 for a moment. Its discovery is no better evidence: both depend on the same informers.
	notServedGrace = 5 * time.Second
	// maxNotServedDelay bounds the delay between requests while the resource is not served.
	maxNotServedDelay = 2 * time.Second
	// minDefinitionInterval is the minimum time between two reads of a CustomResourceDefinition.
	minDefinitionInterval = 10 * time.Second
	// definitionTimeout bounds each read of a CustomResourceDefinition.
	definitionTimeout = 10 * time.Second
)

// handleNotServed emits NotServed once. If the definition is known to be deleted or replaced, it then emits the deletion of all
// objects.
func (f *reflector) handleNotServed() error {
	if f.state != stateNotServed { // 404 may return after another error
		f.version = ""
		f.state = stateNotServed
		if err := f.emit(NotServed, item{}, false); err != nil {
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
	if f.unserved.keepReason != "" {
		return fmt.Errorf("follow %s: not served, its objects are kept: %w (%s)", f.endpoint, err, f.unserved.keepReason)
	}
	return fmt.Errorf("follow %s: not served: %w", f.endpoint, err)
}

// unservedPeriod is a period of only 404 responses. The zero value means no period.
type unservedPeriod struct {
	since          time.Time
	definitionRead time.Time
	keepReason     string        // why objects are not deleted
	served         chan struct{} // receives when discovery serves the resource again; nil outside of a period
	stopWatching   func()
}

func (u *unservedPeriod) begin(ctx context.Context, e *endpoint) {
	if !u.since.IsZero() {
		return
	}
	u.since = time.Now()
	ctx, cancel := context.WithCancel(ctx)
	changes := e.discovery.Changes(ctx)
	served := make(chan struct{}, 1)
	var done sync.WaitGroup
	done.Go(func() {
		for change := range changes {
			if change.New != nil && change.New.GVR == e.apiResource.GVR {
				select {
				case served <- struct{}{}:
				default:
				}
			}
		}
	})
	u.served = served
	u.stopWatching = func() { cancel(); done.Wait() }
}

func (u *unservedPeriod) end() {
	if u.since.IsZero() { // the common case
		return
	}
	u.stopWatching()
	*u = unservedPeriod{}
}

// exceedsGrace reports whether the period has lasted notServedGrace.
func (u *unservedPeriod) exceedsGrace() bool {
	return !u.since.IsZero() && time.Since(u.since) >= notServedGrace
}

// wait waits for d, or until discovery serves the resource again. isServed reports the latter.
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

// definition is the CustomResourceDefinition of a resource, if there is one. An aggregated API has none, and its objects may
// exist while it is not served. A missing definition is therefore evidence only if it existed before. A definition with a
// different UID is evidence only if the old UID was read right after the last complete list. A replacement between the list and
// the read goes unnoticed: the objects are kept until the resource is served again.
type definition struct {
	ctx          context.Context                              // Follow's ctx
	read         func(ctx context.Context) (types.UID, error) // nil if the resource cannot be a custom resource
	lookups      sync.WaitGroup
	cancelLookup context.CancelFunc // cancels the last lookup

	mu      sync.Mutex // guards the fields below
	existed bool
	uid     types.UID // "" until read
}

// newDefinition returns the definition of a resource. Its requests end with ctx.
func newDefinition(ctx context.Context, e *endpoint) *definition {
	d := &definition{ctx: ctx, cancelLookup: func() {}}
	gvr := e.apiResource.GVR
	if !strings.Contains(gvr.Group, ".") { // custom resources have a group with a dot
		return d
	}
	group := schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}
	of := endpoint{conn: e.conn, apiResource: &discovery.Resource{
		GVR: group.WithResource("customresourcedefinitions"), GVK: group.WithKind("CustomResourceDefinition"), Verbs: []string{"get"},
	}}
	definitions := of.objects().Metadata()
	d.read = func(ctx context.Context) (types.UID, error) {
		ctx, cancel := context.WithTimeout(ctx, definitionTimeout)
		defer cancel()
		found, err := definitions.Get(ctx, gvr.Resource+"."+gvr.Group, nil)
		if err != nil {
			return "", err
		}
		return found.GetUID(), nil
	}
	return d
}

// startLookup reads the definition in the background, after a complete list. It retries until success or a terminal rejection.
func (d *definition) startLookup() {
	if d.read == nil {
		return
	}
	d.cancelLookup()
	ctx, cancel := context.WithCancel(d.ctx)
	d.cancelLookup = cancel
	d.mu.Lock()
	d.uid = ""
	d.mu.Unlock()
	d.lookups.Go(func() {
		backoff := retry.Backoff{Min: time.Second, Max: time.Minute}
		for n := 1; ; n++ {
			uid, err := d.read(ctx)
			if err == nil {
				d.record(ctx, uid)
			}
			if err == nil || retry.IsRejected(err) || backoff.Wait(ctx, n) != nil {
				return
			}
		}
	})
}

// record records the UID, unless it is already set or a later lookup has started. It returns the recorded UID.
func (d *definition) record(ctx context.Context, uid types.UID) types.UID {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.existed = true
	if d.uid == "" && ctx.Err() == nil {
		d.uid = uid
	}
	return d.uid
}

func (d *definition) hasExisted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.existed
}

// reasonToKeep returns why the objects of an unserved resource must be kept. It returns "" if the definition existed and has
// been deleted or replaced.
func (d *definition) reasonToKeep() string {
	if d.read == nil {
		return "it is not a custom resource"
	}
	switch uid, err := d.read(d.ctx); {
	case err == nil && d.record(d.ctx, uid) != uid:
		return ""
	case err == nil:
		return "its CustomResourceDefinition exists"
	case !retry.IsObjectNotFound(err):
		return fmt.Sprintf("its CustomResourceDefinition cannot be read: %v", err)
	case !d.hasExisted():
		return "there is no CustomResourceDefinition, and none was seen before"
	default:
		return ""
	}
}
