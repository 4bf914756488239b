package controllers

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
	definitionGroup     = "apiextensions.k8s.io"
	definitionPlural    = "customresourcedefinitions"
	definitionFinalizer = "customresourcecleanup.apiextensions.k8s.io"
)

// Definitions implements the API server's controllers of CustomResourceDefinitions. It accepts names, keeps the registry in sync
// with the stored definitions, and deletes the objects of a definition before the definition. Unlike in the API server, all of this
// is done before the response to the write. It is safe for concurrent use.
//
// Observe queues the definitions affected by a write and processes the queue in the writer's goroutine. If a concurrent writer is
// already processing, it processes the new entries, too. Settle waits for it.
type Definitions struct {
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

// NewDefinitions returns a Definitions. Its writes end with ctx. The store must call Observe after each write.
func NewDefinitions(ctx context.Context, s *store.Store, registry *kinds.Registry, writer *write.Writer, now func() time.Time) *Definitions {
	return &Definitions{ctx: ctx, store: s, registry: registry, writer: writer, now: now, deleting: map[store.Key]bool{}}
}

// Observe processes the definitions affected by a write.
func (c *Definitions) Observe(event store.Event) {
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
func (c *Definitions) Load(definitions []store.Object) error {
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
		reportApproval(definition, c.timestamp())
		if nested.HasCondition(definition, "NamesAccepted") {
			establish(definition, c.timestamp())
		}
		stored, err := c.store.Create(definitionKey(nameOf(definition)), definition)
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
func (c *Definitions) Settle() {
	c.processing.Lock()
	defer c.processing.Unlock()
	c.process()
}

func (c *Definitions) note(event store.Event) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := event.Key.Name
	if event.Key.Group != definitionGroup || event.Key.Resource != definitionPlural {
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

func (c *Definitions) hasPending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending) > 0
}

func (c *Definitions) process() {
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
func (c *Definitions) sync(name string) {
	stored, found := c.store.Get(definitionKey(name))
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
	reportApproval(changed, c.timestamp())
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
func (c *Definitions) update(name string, stored, changed store.Object) (store.Object, bool) {
	if !reflect.DeepEqual(stored["status"], changed["status"]) {
		ownStatus(changed, c.timestamp())
	}
	current, err := c.store.Update(definitionKey(name), store.Version(stored), changed)
	return current, err == nil
}

// Serve serves a stored definition of another server as its conditions say, before it is in the store. If it is terminating, the
// deletion of its last object removes it.
func (c *Definitions) Serve(definition store.Object) {
	c.serve(definition)
	if isDeleting(definition) {
		c.setDeleting(store.Key{Group: groupOf(definition), Resource: pluralOf(definition)}, true)
	}
}

func (c *Definitions) serve(definition store.Object) {
	if !nested.HasCondition(definition, "Established") {
		c.registry.RemoveDefinition(nameOf(definition))
		return
	}
	// The definition is valid. A definition of a built-in resource is stored but not served.
	_ = c.registry.SetDefinition(definition)
}

// reconsider queues the definitions without accepted names: they may have been in conflict with a removed definition.
func (c *Definitions) reconsider(name string) {
	all, _, err := c.store.List(definitionGroup, definitionPlural, "", 0)
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

func (c *Definitions) othersOf(definition store.Object) []store.Object {
	all, _, err := c.store.List(definitionGroup, definitionPlural, "", 0)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(other store.Object) bool {
		return nameOf(other) == nameOf(definition) || groupOf(other) != groupOf(definition)
	})
}

// finalize deletes the objects of a terminating definition, and then the definition.
func (c *Definitions) finalize(name string, stored store.Object) {
	c.serve(stored)
	if !slices.Contains(finalizers(stored), definitionFinalizer) {
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

func (c *Definitions) setDeleting(id store.Key, deleting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if deleting {
		c.deleting[id] = true
	} else {
		delete(c.deleting, id)
	}
}

func (c *Definitions) setTerminating(name string, stored store.Object, status, reason, message string) (store.Object, bool) {
	changed := runtime.DeepCopyJSON(stored)
	setCondition(nested.EnsureMap(changed, "status"), "Terminating", status, reason, message, c.timestamp(), false)
	return c.update(name, stored, changed)
}

func (c *Definitions) removeFinalizer(name string, stored store.Object) {
	rest := slices.DeleteFunc(finalizers(stored), func(f string) bool { return f == definitionFinalizer })
	if len(rest) == 0 {
		_, _ = c.store.Delete(definitionKey(name), store.Version(stored), nil)
		return
	}
	changed := runtime.DeepCopyJSON(stored)
	list := make([]any, 0, len(rest))
	for _, name := range rest {
		list = append(list, name)
	}
	nested.EnsureMap(changed, "metadata")["finalizers"] = list
	_, _ = c.store.Update(definitionKey(name), store.Version(stored), changed)
}

// deleteObjects deletes all objects of a resource. Finalizers may delay their removal.
func (c *Definitions) deleteObjects(id store.Key) {
	versions := c.registry.Versions(id.Group, id.Resource)
	if len(versions) == 0 {
		return
	}
	resource := versions[0]
	if stored := c.registry.Lookup(id.Group, resource.StorageVersion, id.Resource); stored != nil { // needs no conversion
		resource = stored
	}
	objects, _, err := c.store.List(id.Group, id.Resource, "", 0)
	if err != nil {
		return
	}
	for _, obj := range objects {
		_, err := c.writer.Delete(c.ctx, &write.Request{
			Resource: resource, Namespace: nested.String(obj, "metadata", "namespace"), Name: nameOf(obj), User: access.User{Name: "system:apiserver"},
		}, write.Body{})
		if err != nil && !apierrors.IsNotFound(err) {
			return
		}
	}
}

func (c *Definitions) timestamp() string { return c.now().UTC().Format(time.RFC3339) }

func groupOf(definition object) string { return nested.String(definition, "spec", "group") }

func pluralOf(definition object) string { return nested.String(definition, "spec", "names", "plural") }

func definitionKey(name string) store.Key {
	return store.Key{Group: definitionGroup, Resource: definitionPlural, Name: name}
}
