package controller

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// watching is one Watch of an operator.
type watching struct {
	resource  schema.GroupVersionResource
	handler   Handler
	namespace string
	client    *dynamic.Client
	opts      Options
}

// run watches until ctx ends or the cache under it fails.
func (w *watching) run(parent context.Context) error {
	resource, err := w.find(parent)
	if err != nil {
		return fmt.Errorf("watch %s: %w", w.resource.GroupResource(), err)
	}
	s := &stories{
		resource: resource, handler: w.handler, objects: cache.New(resource, nil),
		told: map[cache.Key]*unstructured.Object{}, last: map[cache.Key]finalState{},
	}
	r := newRunning(&w.opts, resource, func(ctx context.Context, key cache.Key) (again time.Duration, err error) { return 0, s.tell(ctx, key) })
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	var beside sync.WaitGroup
	beside.Go(func() { stop(s.objects.Run(ctx)) })
	beside.Go(func() {
		if err := s.follow(ctx, r.queue, r.opts.Logger); err != nil {
			stop(r.panics.note(err))
		}
	})
	r.work(ctx, stop)
	beside.Wait()
	return r.panics.beside(endOf(parent, ctx))
}

func (w *watching) find(ctx context.Context) (*dynamic.Resource, error) {
	resource, err := w.client.Resource(ctx, w.resource.Resource+"."+w.resource.Version+"."+w.resource.Group)
	switch {
	case err != nil:
		return nil, err
	case w.namespace != "":
		return resource.In(w.namespace), nil
	default:
		return resource.AllNamespaces(), nil
	}
}

// stories tell a handler what happens to each object, by comparing what it was told with what is.
type stories struct {
	resource *dynamic.Resource
	handler  Handler
	objects  *cache.Cache[unstructured.Object]

	mu   sync.Mutex
	told map[cache.Key]*unstructured.Object // what the handler has taken
	last map[cache.Key]finalState           // of deleted objects whose deletion it may have to handle
}

// finalState is the state of an object that is delivered, the last one of a deleted object.
type finalState struct {
	object  *unstructured.Object
	unknown bool // it may not be the final one
}

// follow adds what changes to the queue until ctx ends, or the cache.
func (s *stories) follow(ctx context.Context, queue *Queue[cache.Key], log *slog.Logger) (err error) {
	defer contain(&err, "a watch of an Operator")
	served := servedLog{log: log, resource: s.objects.String()}
	for change := range s.objects.Changes(ctx) {
		served.note(change.Type)
		if change.Object != nil {
			queue.Add(s.note(change))
		}
	}
	return nil
}

// note keeps the last state of what is deleted.
func (s *stories) note(change cache.Change[unstructured.Object]) cache.Key {
	key := cache.Key{Namespace: change.Object.GetNamespace(), Name: change.Object.GetName()}
	if change.Type == watch.Deleted {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last[key] = finalState{change.Object, change.FinalStateUnknown} // even if it was not told: it may be in the handler's hands just now
	}
	return key
}

// tell tells the handler what is new about one object. The queue sees to it that one object is told once at a time.
func (s *stories) tell(ctx context.Context, key cache.Key) error {
	now, _ := s.objects.Get(key.Namespace, key.Name)
	s.mu.Lock()
	told, last := s.told[key], s.last[key]
	if told == nil {
		delete(s.last, key)
	}
	s.mu.Unlock()
	if told != nil && (now == nil || now.GetUID() != told.GetUID()) {
		if last.object == nil || last.object.GetUID() != told.GetUID() {
			last = finalState{told, true}
		}
		if err := s.handle(ctx, key, watch.Deleted, last); err != nil {
			return err
		}
		told = nil
	}
	switch {
	case now == nil:
		return nil
	case told == nil:
		return s.handle(ctx, key, watch.Added, finalState{object: now})
	case told.GetResourceVersion() != now.GetResourceVersion():
		return s.handle(ctx, key, watch.Modified, finalState{object: now})
	default:
		return nil
	}
}

// handle calls the handler and remembers what it took.
func (s *stories) handle(ctx context.Context, key cache.Key, kind watch.EventType, state finalState) error {
	resource := s.resource
	if key.Namespace != "" {
		resource = resource.In(key.Namespace)
	}
	event := ResourceEvent{Type: kind, Object: state.object.DeepCopy(), Resource: resource, FinalStateUnknown: state.unknown}
	if err := s.handler(ctx, event); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == watch.Deleted {
		delete(s.told, key)
		delete(s.last, key)
	} else {
		s.told[key] = state.object
	}
	return nil
}
