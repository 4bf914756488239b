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

// definitionTimeout bounds each read of a CustomResourceDefinition.
const definitionTimeout = 10 * time.Second

// definition is the CustomResourceDefinition of a resource, if there is one. An aggregated API has none, and its objects may
// exist while it is not served. A missing definition is therefore evidence only if it existed before. A definition with a
// different UID is evidence only if the old UID was read right after the last complete list. A replacement between the list and
// the read goes unnoticed: the objects are kept until the resource is served again.
//
// It implements reflector.Evidence.
type definition struct {
	endpoint     *endpoint
	ctx          context.Context                              // Follow's ctx
	read         func(ctx context.Context) (types.UID, error) // nil if the resource cannot be a custom resource
	lookups      sync.WaitGroup
	cancelLookup context.CancelFunc // cancels the last lookup
	keepReason   string             // why the objects are kept while the resource is not served

	mu      sync.Mutex // guards the fields below
	existed bool
	uid     types.UID // "" until read
}

// newDefinition returns the definition of a resource. Its requests end with ctx. The caller calls close.
func newDefinition(ctx context.Context, e *endpoint) definition {
	return definition{endpoint: e, ctx: ctx, cancelLookup: func() {}, read: definitionReader(e)}
}

// definitionReader returns a function that reads the UID of the definition of a resource, nil if it cannot have one.
func definitionReader(e *endpoint) func(ctx context.Context) (types.UID, error) {
	gvr := e.apiResource.GVR
	if !strings.Contains(gvr.Group, ".") { // custom resources have a group with a dot
		return nil
	}
	return func(ctx context.Context) (types.UID, error) {
		ctx, cancel := context.WithTimeout(ctx, definitionTimeout)
		defer cancel()
		group := schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}
		of := endpoint{conn: e.conn, apiResource: &discovery.Resource{
			GVR: group.WithResource("customresourcedefinitions"), GVK: group.WithKind("CustomResourceDefinition"), Verbs: []string{"get"},
		}}
		definitions := of.objects().Metadata() // made when it is needed: programs follow hundreds of kinds
		found, err := definitions.Get(ctx, gvr.Resource+"."+gvr.Group, nil)
		if err != nil {
			return "", err
		}
		return found.GetUID(), nil
	}
}

// Listed reads the definition in the background, after a complete list. It retries until success or a terminal rejection.
func (d *definition) Listed() {
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
		defer cancel()
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

// close cancels the last lookup and waits for its end.
func (d *definition) close() {
	d.cancelLookup()
	d.lookups.Wait()
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

// Served watches discovery.
func (d *definition) Served(ctx context.Context) (served <-chan struct{}, stop func()) {
	d.keepReason = ""
	ctx, cancel := context.WithCancel(ctx)
	changes := d.endpoint.discovery.Changes(ctx, d.endpoint.discovery.Latest())
	signal := make(chan struct{}, 1)
	var done sync.WaitGroup
	done.Go(func() {
		for change := range changes {
			if change.New != nil && change.New.GVR == d.endpoint.apiResource.GVR {
				select {
				case signal <- struct{}{}:
				default:
				}
			}
		}
	})
	return signal, func() { cancel(); done.Wait() }
}

// AreObjectsGone reports whether the definition existed and has been deleted or replaced.
func (d *definition) AreObjectsGone() bool {
	d.keepReason = d.reasonToKeep()
	return d.keepReason == ""
}

func (d *definition) notServedError(err error) error {
	if d.keepReason != "" {
		return fmt.Errorf("follow %s: not served, its objects are kept: %w (%s)", d.endpoint, err, d.keepReason)
	}
	return fmt.Errorf("follow %s: not served: %w", d.endpoint, err)
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
