// Package definitions implements the API server's controllers of CustomResourceDefinitions: it accepts their names, serves them,
// and deletes their objects before their removal. Unlike in the API server, this is complete before the response to the write.
package definitions

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
	"github.com/anykind/anykind/apitest/internal/write"
)

const (
	group     = "apiextensions.k8s.io"
	resource  = "customresourcedefinitions"
	finalizer = "customresourcecleanup.apiextensions.k8s.io"
)

// Controller keeps a registry and the status of definitions in sync with the stored definitions. It is safe for concurrent use.
//
// Observe queues the definitions affected by a write and processes the queue in the writer's goroutine. If a concurrent writer is
// already processing, it processes the new entries, too. Settle waits for it.
type Controller struct {
	ctx      context.Context
	store    *store.Store
	registry *kinds.Registry
	writer   *write.Writer
	now      func() time.Time

	processing sync.Mutex
	mu         sync.Mutex
	pending    []string
	deleting   map[store.Key]bool // group and plural of definitions in deletion of their objects
}

// New returns a Controller. Its writes end with ctx. The store must call Observe after each write.
func New(ctx context.Context, s *store.Store, registry *kinds.Registry, writer *write.Writer, now func() time.Time) *Controller {
	return &Controller{ctx: ctx, store: s, registry: registry, writer: writer, now: now, deleting: map[store.Key]bool{}}
}

// Observe processes the definitions affected by a write.
func (c *Controller) Observe(event store.Event) {
	if !c.note(event) {
		return
	}
	for c.hasPending() && c.processing.TryLock() {
		c.process()
		c.processing.Unlock()
	}
}

// Load stores defaulted and validated definitions in their final state: accepted, established and served, or with the condition
// of a name conflict with an earlier definition.
func (c *Controller) Load(definitions []store.Object) error {
	c.processing.Lock()
	defer c.processing.Unlock()
	taken := map[string]*takenNames{}
	for _, definition := range definitions {
		others := taken[groupOf(definition)]
		if others == nil {
			others = newTakenNames(nil)
			taken[groupOf(definition)] = others
		}
		acceptNames(definition, others, c.timestamp())
		others.add(definition)
		announce(definition, c.timestamp())
		if nested.HasCondition(definition, "NamesAccepted") {
			establish(definition, c.timestamp())
		}
		stored, err := c.store.Create(key(nameOf(definition)), definition)
		if err != nil {
			return fmt.Errorf("create CustomResourceDefinition %q: %w", nameOf(definition), err)
		}
		c.serve(stored)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = nil
	return nil
}

// Settle returns when all observed writes are processed.
func (c *Controller) Settle() {
	c.processing.Lock()
	defer c.processing.Unlock()
	c.process()
}

func (c *Controller) note(event store.Event) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := event.Key.Name
	if event.Key.Group != group || event.Key.Resource != resource {
		if event.Type != watch.Deleted || !c.deleting[store.Key{Group: event.Key.Group, Resource: event.Key.Resource}] {
			return false
		}
		name = event.Key.Resource + "." + event.Key.Group
	}
	if !slices.Contains(c.pending, name) {
		c.pending = append(c.pending, name)
	}
	return true
}

func (c *Controller) hasPending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending) > 0
}

func (c *Controller) process() {
	for {
		c.mu.Lock()
		if len(c.pending) == 0 {
			c.mu.Unlock()
			return
		}
		name := c.pending[0]
		c.pending = c.pending[1:]
		c.mu.Unlock()
		c.sync(name)
	}
}

// sync reconciles a definition with the store.
func (c *Controller) sync(name string) {
	stored, found := c.store.Get(key(name))
	if !found {
		c.registry.RemoveDefinition(name)
		c.reconsider(name)
		return
	}
	if isDeleting(stored) {
		c.finalize(name, stored)
		return
	}
	others := newTakenNames(c.othersOf(stored))
	changed := runtime.DeepCopyJSON(stored)
	released := acceptNames(changed, others, c.timestamp())
	announce(changed, c.timestamp())
	if current, ok := c.update(name, stored, changed); ok {
		stored = current
	}
	if !nested.HasCondition(stored, "Established") && nested.HasCondition(stored, "NamesAccepted") {
		changed = runtime.DeepCopyJSON(stored)
		establish(changed, c.timestamp())
		if current, ok := c.update(name, stored, changed); ok {
			stored = current
		}
	}
	c.serve(stored)
	if released {
		c.reconsider(name)
	}
}

// update writes the status of a definition like the API server's controllers. On a conflict, the concurrent write has queued the
// definition again.
func (c *Controller) update(name string, stored, changed store.Object) (store.Object, bool) {
	if !reflect.DeepEqual(stored["status"], changed["status"]) {
		ownStatus(changed, c.timestamp())
	}
	current, err := c.store.Update(key(name), store.Version(stored), changed)
	return current, err == nil
}

func (c *Controller) serve(definition store.Object) {
	if !nested.HasCondition(definition, "Established") {
		c.registry.RemoveDefinition(nameOf(definition))
		return
	}
	// The definition is valid. A definition of a built-in resource is stored but not served.
	_ = c.registry.SetDefinition(definition)
}

// reconsider queues the definitions without accepted names: they may have been in conflict with a removed definition.
func (c *Controller) reconsider(name string) {
	all, _, err := c.store.List(group, resource, "", 0)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range all {
		if otherName := nameOf(other); otherName != name && !nested.HasCondition(other, "NamesAccepted") && !slices.Contains(c.pending, otherName) {
			c.pending = append(c.pending, otherName)
		}
	}
}

func (c *Controller) othersOf(definition store.Object) []store.Object {
	all, _, err := c.store.List(group, resource, "", 0)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(other store.Object) bool {
		return nameOf(other) == nameOf(definition) || groupOf(other) != groupOf(definition)
	})
}

// finalize deletes the objects of a terminating definition, and then the definition.
func (c *Controller) finalize(name string, stored store.Object) {
	c.serve(stored)
	if !slices.Contains(finalizersOf(stored), finalizer) {
		return
	}
	reason := "NeverEstablished"
	message := "resource was never established"
	if nested.HasCondition(stored, "Established") {
		reason = "InstanceDeletionCompleted"
		message = "removed all instances"
		id := store.Key{Group: groupOf(stored), Resource: pluralOf(stored)}
		c.setDeleting(id, true)
		c.deleteObjects(id)
		if c.store.Len(id.Group, id.Resource) > 0 {
			c.setTerminating(name, stored, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
			return
		}
		c.setDeleting(id, false)
	}
	if current, ok := c.setTerminating(name, stored, "False", reason, message); ok {
		c.removeFinalizer(name, current)
	}
}

func (c *Controller) setDeleting(id store.Key, deleting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if deleting {
		c.deleting[id] = true
	} else {
		delete(c.deleting, id)
	}
}

func (c *Controller) setTerminating(name string, stored store.Object, status, reason, message string) (store.Object, bool) {
	changed := runtime.DeepCopyJSON(stored)
	setCondition(changed, condition{"Terminating", status, reason, message}, c.timestamp())
	return c.update(name, stored, changed)
}

func (c *Controller) removeFinalizer(name string, stored store.Object) {
	rest := slices.DeleteFunc(finalizersOf(stored), func(f string) bool { return f == finalizer })
	if len(rest) == 0 {
		_, _ = c.store.Delete(key(name), store.Version(stored), nil)
		return
	}
	changed := runtime.DeepCopyJSON(stored)
	setFinalizers(changed, rest)
	_, _ = c.store.Update(key(name), store.Version(stored), changed)
}

// deleteObjects deletes all objects of a resource. Finalizers may delay their removal.
func (c *Controller) deleteObjects(id store.Key) {
	versions := c.registry.Versions(id.Group, id.Resource)
	if len(versions) == 0 {
		return
	}
	objects, _, err := c.store.List(id.Group, id.Resource, "", 0)
	if err != nil {
		return
	}
	for _, obj := range objects {
		namespace, name := identityOf(obj)
		_, err := c.writer.Delete(c.ctx, &write.Request{
			Resource: versions[0], Namespace: namespace, Name: name, User: access.User{Name: "system:apiserver"},
		}, write.Body{})
		if err != nil && !apierrors.IsNotFound(err) {
			return
		}
	}
}

func (c *Controller) timestamp() string { return c.now().UTC().Format(time.RFC3339) }

func key(name string) store.Key { return store.Key{Group: group, Resource: resource, Name: name} }
