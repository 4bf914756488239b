// Package controllers has the API server's controllers of CustomResourceDefinitions (Definitions), and simulates the controllers
// of a cluster over a server's store (Run): garbage collection, namespace deletion, default service accounts, the workload
// controllers, and a kubelet. Its containers start at once.
//
// Run is a single goroutine. It reads the events of the whole store, queues the keys of affected objects, and reconciles keys in
// order. It reads the store and writes through the write path, like a client. A failed reconciliation is retried after a delay. There are
// no other delays, so a rollout takes no time in a testing/synctest bubble.
package controllers

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
	"github.com/anykind/anykind/apitest/internal/write"
)

// Config has the dependencies of a Controller and enables its parts.
type Config struct {
	Store       *store.Store
	Registry    *kinds.Registry
	Writer      *write.Writer
	Now         func() time.Time
	Certificate []byte // CA certificate for kube-root-ca.crt, PEM

	GarbageCollection, Namespaces, ServiceAccounts, Workloads, Pods bool
}

// retryDelay is the delay before a failed reconciliation is retried.
const retryDelay = 100 * time.Millisecond

// Controller reconciles the objects of a server.
type Controller struct {
	Config
	queue      []store.Key
	queued     map[store.Key]bool
	later      map[store.Key]time.Time // time of the next reconciliation
	dependents *ownerIndex
	lastIP     int
}

// Run reconciles until ctx ends.
func Run(ctx context.Context, config Config) {
	c := &Controller{Config: config, queued: map[store.Key]bool{}, later: map[store.Key]time.Time{}, dependents: newOwnerIndex()}
	for ctx.Err() == nil {
		_ = c.follow(ctx) // the error is ctx's, or ErrCompacted after lagging behind: restart
	}
}

// follow reconciles all objects, and then changed objects.
func (c *Controller) follow(ctx context.Context) error {
	events, err := c.Store.WatchAll(c.Store.Revision())
	if err != nil {
		return err
	}
	c.dependents = newOwnerIndex()
	for _, resource := range c.Registry.Resources() {
		objects, _, err := c.Store.List(resource.Group, resource.Plural, "", 0)
		if err != nil {
			return err
		}
		for _, obj := range objects {
			c.observe(store.Event{Type: watch.Added, Key: keyOf(resource, obj), Object: obj})
		}
	}
	for {
		batch, _, more, err := events.Next(100)
		if err != nil {
			return err
		}
		for _, event := range batch {
			c.observe(event)
		}
		if len(batch) > 0 {
			continue
		}
		if c.next(ctx) {
			continue
		}
		if err := c.wait(ctx, more); err != nil {
			return err
		}
	}
}

// wait waits for an event or the next delayed reconciliation.
func (c *Controller) wait(ctx context.Context, more <-chan struct{}) error {
	var expired <-chan time.Time
	if at, ok := c.earliest(); ok {
		timer := time.NewTimer(max(0, at.Sub(c.Now())))
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-more:
	case <-expired:
		for key, at := range c.later {
			if !at.After(c.Now()) {
				c.enqueue(key)
			}
		}
	}
	return nil
}

func (c *Controller) earliest() (earliest time.Time, ok bool) {
	for _, at := range c.later {
		if !ok || at.Before(earliest) {
			earliest = at
			ok = true
		}
	}
	return earliest, ok
}

// enqueue adds a key to the queue.
func (c *Controller) enqueue(key store.Key) {
	delete(c.later, key)
	if !c.queued[key] {
		c.queued[key] = true
		c.queue = append(c.queue, key)
	}
}

// observe queues the objects affected by an event: the object, its controller, its dependents and its namespace.
func (c *Controller) observe(event store.Event) {
	c.dependents.observe(event)
	c.enqueue(event.Key)
	for _, obj := range []store.Object{event.Object, event.Previous} {
		if owner, ok := c.controllerOf(obj, event.Key.Namespace); ok {
			c.enqueue(owner)
		}
	}
	for _, dependent := range c.dependents.of(uidOf(event.Object)) {
		c.enqueue(dependent)
	}
	for _, owner := range owners(event.Object) { // an owner in foreground deletion waits for its dependents
		if key, ok := c.dependents.key(owner.uid); ok && event.Type == watch.Deleted {
			c.enqueue(key)
		}
	}
	if namespace := event.Key.Namespace; namespace != "" && event.Type == watch.Deleted {
		c.enqueue(store.Key{Resource: "namespaces", Name: namespace})
	}
	if event.Key.Group == "" && event.Key.Resource == "nodes" {
		c.enqueueAll("apps", "daemonsets")
	}
	if event.Key.Group == "" && slices.Contains([]string{"serviceaccounts", "configmaps"}, event.Key.Resource) {
		c.enqueue(store.Key{Resource: "namespaces", Name: event.Key.Namespace})
	}
}

func (c *Controller) enqueueAll(group, plural string) {
	objects, _, err := c.Store.List(group, plural, "", 0)
	if err != nil {
		return
	}
	for _, obj := range objects {
		metadata := nested.Map(obj, "metadata")
		c.enqueue(store.Key{Group: group, Resource: plural, Namespace: nested.String(metadata, "namespace"), Name: nested.String(metadata, "name")})
	}
}

// next reconciles the first key of the queue. It returns false if the queue is empty.
func (c *Controller) next(ctx context.Context) bool {
	if len(c.queue) == 0 || ctx.Err() != nil {
		return false
	}
	key := c.queue[0]
	c.queue = c.queue[1:]
	delete(c.queued, key)
	if err := c.reconcile(ctx, key); err != nil {
		c.repeat(key, retryDelay)
	}
	return true
}

// repeat reconciles the key again after a delay.
func (c *Controller) repeat(key store.Key, after time.Duration) {
	at := c.Now().Add(after)
	if earlier, ok := c.later[key]; !ok || at.Before(earlier) {
		c.later[key] = at
	}
}

func (c *Controller) reconcile(ctx context.Context, key store.Key) error {
	if c.GarbageCollection {
		if err := c.collect(ctx, key); err != nil {
			return err
		}
	}
	obj, found := c.Store.Get(key)
	if !found {
		return nil
	}
	name := key.Resource
	if key.Group != "" {
		name += "." + key.Group
	}
	if name == "namespaces" {
		return c.reconcileNamespace(ctx, key, obj)
	}
	if name == "pods" && c.Pods {
		return c.reconcilePod(ctx, key, obj)
	}
	if !c.Workloads || isDeleting(obj) {
		return nil
	}
	switch name {
	case "deployments.apps":
		return c.reconcileDeployment(ctx, key, obj)
	case "replicasets.apps":
		return c.reconcileReplicaSet(ctx, key, obj)
	case "statefulsets.apps":
		return c.reconcileStatefulSet(ctx, key, obj)
	case "daemonsets.apps":
		return c.reconcileDaemonSet(ctx, key, obj)
	case "jobs.batch":
		return c.reconcileJob(ctx, key, obj)
	}
	return nil
}
