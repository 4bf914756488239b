package controller

import (
	"context"
	"errors"
	"sync"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Operator calls handlers for what happens to objects: the short way to a controller, where a handler takes an event
// instead of reading a cache. Tell it what to watch, then Run it. It is safe for concurrent use.
type Operator struct {
	client *dynamic.Client
	opts   Options

	mu      sync.Mutex
	watches []*watching
	running bool
	begin   func(*watching) // where Run is under way and its ctx has not ended
}

// ResourceEvent is what happened to one object.
type ResourceEvent struct {
	// Type is watch.Added, watch.Modified or watch.Deleted. What was there at the start is Added.
	Type watch.EventType
	// Object is the object as it is now, or as it was at last (Deleted). It is the handler's own.
	Object *unstructured.Object
	// Resource is a handle on the object's resource, in its namespace.
	Resource *dynamic.Resource
	// FinalStateUnknown is set with Deleted if Object may not be the object's final state: the API did not report the
	// deletion, which a relist showed, or the state after it was replaced before the handler could be called.
	FinalStateUnknown bool
}

// Handler handles one event. While the server does not serve the resource there are none: objects are reported as deleted
// only if the API did so, if a list of all objects lacks them, or if their CustomResourceDefinition is deleted. An error, or
// a panic, is logged and has it called again after a growing delay, with what is true of the object then.
type Handler func(ctx context.Context, event ResourceEvent) error

// NewOperator makes an operator; of opts, Triggers are not used. Each watch has Options.Workers of its own, and a queue:
// with several watches, Queue.Metrics is called by several goroutines at once.
func NewOperator(client *dynamic.Client, opts *Options) *Operator {
	o := &Operator{client: client}
	if opts != nil {
		o.opts = *opts
	}
	return o
}

// Watch has handler called for every object of a resource, in a namespace or, with "", in all, and for whatever happens
// to it. An object's events come one after the other and in order; what changes several times before its handler comes
// to it is one event, and what comes and goes meanwhile none. Called while Run is under way, it begins at once, and a
// watch that fails ends Run.
func (o *Operator) Watch(group, version, plural string, handler Handler, namespace string) {
	one := &watching{
		resource: schema.GroupVersionResource{Group: group, Version: version, Resource: plural},
		handler:  handler, namespace: namespace, client: o.client, opts: o.opts,
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watches = append(o.watches, one)
	if o.begin != nil {
		o.begin(one)
	}
}

// Run watches until ctx ends, until the server refuses one of the watches at its start, or until a hook in Options panics,
// which is a *[PanicError]. When it ends, handlers under way have Options.Grace to finish, or no time where the Lease of
// [Lead] is lost, as with [Run]. It runs once at a time.
func (o *Operator) Run(ctx context.Context) error {
	parent := ctx
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	var all sync.WaitGroup
	var panics panics
	o.mu.Lock()
	if o.running {
		o.mu.Unlock()
		return errors.New("run an operator: it runs already")
	}
	o.running = true
	defer o.stopped()
	o.begin = func(one *watching) { all.Go(func() { stop(panics.note(one.run(ctx))) }) }
	for _, one := range o.watches {
		o.begin(one)
	}
	o.mu.Unlock()
	<-ctx.Done()
	o.mu.Lock()
	o.begin = nil
	o.mu.Unlock()
	all.Wait()
	return panics.beside(endOf(parent, ctx))
}

// stopped lets Run be called again: no handler is under way.
func (o *Operator) stopped() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running = false
}
