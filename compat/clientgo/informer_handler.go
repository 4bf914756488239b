package clientgo

import (
	"context"
	"fmt"
	"time"

	anykind "github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// registration is a handler of an informer. It implements cache.ResourceEventHandlerRegistration.
type registration struct {
	handler cache.ResourceEventHandler
	resync  time.Duration
	// taken is done when the handler's goroutine has the initial objects, and synced when the handler has been called for them.
	taken, synced *doneChecker
	removed       *doneChecker

	// Of the goroutine that calls the handler: when the next resync is due, and until when events belong to the last one.
	nextResync, resyncEnds time.Time
}

// HasSynced implements cache.ResourceEventHandlerRegistration.
func (r *registration) HasSynced() bool { return r.synced.isDone() }

// HasSyncedChecker implements cache.ResourceEventHandlerRegistration.
func (r *registration) HasSyncedChecker() cache.DoneChecker { return r.synced }

// AddEventHandler implements cache.SharedInformer.
func (i *informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (i *informer) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, resync time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &resync})
}

// AddEventHandlerWithOptions implements cache.SharedInformer. Once the informer has started, a resync period cannot become
// shorter than the shortest before, as in client-go.
func (i *informer) AddEventHandlerWithOptions(
	handler cache.ResourceEventHandler, options cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return nil, fmt.Errorf("handler %v was not added to shared informer because it has stopped already", handler)
	}
	resync := i.resync
	if options.ResyncPeriod != nil {
		resync = *options.ResyncPeriod
	}
	if resync > 0 {
		switch {
		case !i.started && (i.minResync == 0 || resync < i.minResync):
			i.minResync = resync
		case i.started:
			resync = max(resync, i.minResync)
		}
	}
	added := &registration{
		handler: handler, resync: resync,
		taken: newDoneChecker(""), synced: newDoneChecker(i.name + " handler"), removed: newDoneChecker(""),
	}
	i.handlers[added] = struct{}{}
	if i.started {
		ctx := i.ctx
		i.running.Go(func() { added.run(ctx, i) })
	}
	return added, nil
}

// RemoveEventHandler implements cache.SharedInformer. A call of the handler that has begun may still be running.
func (i *informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	removed, ok := handle.(*registration)
	if !ok {
		return fmt.Errorf("remove a handler of %s: %T is not a registration of this informer", i.name, handle)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.handlers, removed)
	removed.removed.close()
	return nil
}

// run calls the handler until ctx ends or it is removed.
func (r *registration) run(ctx context.Context, i *informer) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-r.removed.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	r.nextResync = time.Now().Add(r.resync)
	for ctx.Err() == nil {
		current, replaced := i.cache()
		if current != nil {
			r.follow(ctx, current)
		}
		select {
		case <-replaced:
		case <-ctx.Done():
		}
	}
}

// follow calls the handler for the changes of a cache. It takes all initial objects before it calls the handler for the first of
// them: once the informer has synced, the handler gets each of them, and then what has become of it, whatever comes first.
func (r *registration) follow(ctx context.Context, current *objectCache) {
	var initial []anykind.Change[object]
	isInitial := true
	for change := range current.Changes(ctx) {
		if !isInitial {
			r.handle(change)
			continue
		}
		initial = append(initial, change)
		if change.Type != dynamic.Synced {
			continue
		}
		r.taken.close()
		for i := 0; i < len(initial) && ctx.Err() == nil; i++ {
			r.handle(initial[i])
		}
		initial, isInitial = nil, false
	}
}

// waitTaken waits until the handler's goroutine has the initial objects or never will.
func (r *registration) waitTaken(ctx context.Context) {
	select {
	case <-r.taken.done:
	case <-r.removed.done:
	case <-ctx.Done():
	}
}

// handle calls the handler for a change.
func (r *registration) handle(change anykind.Change[object]) {
	switch change.Type { //nolint:exhaustive // A cache delivers no bookmarks and errors.
	case watch.Added:
		r.handler.OnAdd(change.Object, !r.synced.isDone())
	case watch.Modified:
		if change.Old != change.Object || r.isResyncDue(time.Now()) {
			r.handler.OnUpdate(change.Old, change.Object)
		}
	case watch.Deleted:
		if change.FinalStateUnknown {
			r.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: anykind.KeyOf(change.Object).String(), Obj: change.Object})
			return
		}
		r.handler.OnDelete(change.Object)
	case dynamic.Synced:
		r.synced.close()
	}
}

// isResyncDue reports whether an event of the cache's resync is for the handler, whose period may be longer than the cache's.
func (r *registration) isResyncDue(now time.Time) bool {
	if r.resync <= 0 {
		return false
	}
	if !now.Before(r.nextResync) {
		r.resyncEnds, r.nextResync = now.Add(r.resync/2), now.Add(r.resync)
	}
	return now.Before(r.resyncEnds)
}
