package sharedinformer

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
)

// handler is an event handler of an informer and its registration. It has its own goroutine, so a slow handler does not delay the
// cache or other handlers.
type handler[T any] struct {
	callbacks toolscache.ResourceEventHandler
	export    func(*T) any
	rounds    resyncRounds
	// taken is closed when the goroutine has received the initial objects. syncState is set when the callbacks have been called
	// with them.
	taken chan struct{}
	*syncState
	ctx    context.Context //nolint:containedctx // of the goroutine; nil before the start
	remove context.CancelFunc
}

// AddEventHandler implements toolscache.SharedInformer.
func (i *Informer[T, P]) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements toolscache.SharedInformer.
func (i *Informer[T, P]) AddEventHandlerWithResyncPeriod(
	h toolscache.ResourceEventHandler, period time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions implements toolscache.SharedInformer. As in client-go, a handler added after the start gets at least
// the shortest resync period so far.
func (i *Informer[T, P]) AddEventHandlerWithOptions(
	h toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return nil, fmt.Errorf("handler %v was not added to shared informer because it has stopped already", h)
	}
	period := i.config.ResyncPeriod
	if options.ResyncPeriod != nil {
		period = *options.ResyncPeriod
	}
	switch {
	case period <= 0:
	case i.ctx != nil:
		period = max(period, i.resync)
	case i.resync == 0 || period < i.resync:
		i.resync = period
	}
	added := &handler[T]{
		callbacks: h, export: i.config.Export, rounds: resyncRounds{period: period},
		taken: make(chan struct{}), syncState: newSyncState(fmt.Sprintf("%s: %T", i.config.Name, h)),
	}
	i.handlers.Insert(added)
	if i.ctx != nil {
		i.startHandler(added)
	}
	return added, nil
}

// RemoveEventHandler implements toolscache.SharedInformer. A callback may still be running when it returns.
func (i *Informer[T, P]) RemoveEventHandler(registration toolscache.ResourceEventHandlerRegistration) error {
	h, ok := registration.(*handler[T])
	if !ok {
		return fmt.Errorf("invalid key type %T", registration)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.handlers.Has(h) && h.remove != nil {
		h.remove()
	}
	i.handlers.Delete(h)
	return nil
}

// startHandler starts the goroutine of a handler. The informer must have started; the caller holds mu.
func (i *Informer[T, P]) startHandler(h *handler[T]) {
	h.ctx, h.remove = context.WithCancel(i.ctx)
	h.rounds.tick = i.resync
	h.rounds.next = time.Now().Add(h.rounds.period)
	c := i.Cache()
	i.running.Go(func() {
		defer h.remove()
		follow[T, P](h, c)
	})
}

// follow calls a handler for the changes of a cache. It receives all initial objects before the first callback. So once the
// informer has synced, the handler gets every initial object, and later changes after it.
func follow[T any, P cache.Object[T]](h *handler[T], c *cache.Cache[T]) {
	var initial []cache.Change[T]
	isInitial := true
	for change := range c.Changes(h.ctx) {
		if !isInitial {
			handle[T, P](h, change)
			continue
		}
		initial = append(initial, change)
		if change.Type != dynamic.Synced {
			continue
		}
		close(h.taken)
		for i := 0; i < len(initial) && h.ctx.Err() == nil; i++ {
			handle[T, P](h, initial[i])
		}
		initial = nil
		isInitial = false
	}
}

// waitTaken waits until each present handler has received the initial objects or has been removed, or the informer ends.
func (i *Informer[T, P]) waitTaken() {
	i.mu.Lock()
	handlers := i.handlers.UnsortedList()
	i.mu.Unlock()
	for _, h := range handlers {
		select {
		case <-h.taken:
		case <-h.ctx.Done():
		}
	}
}

// handle calls a handler for a change.
func handle[T any, P cache.Object[T]](h *handler[T], change cache.Change[T]) {
	switch change.Type {
	case watch.Added:
		h.callbacks.OnAdd(h.export(change.Object), !h.HasSynced())
	case watch.Modified:
		if change.Old != change.Object || h.rounds.includes(time.Now()) {
			h.callbacks.OnUpdate(h.export(change.Old), h.export(change.Object))
		}
	case watch.Deleted:
		if change.FinalStateUnknown {
			key := toolscache.ObjectName(cache.KeyOf(P(change.Object))).String()
			h.callbacks.OnDelete(toolscache.DeletedFinalStateUnknown{Key: key, Obj: h.export(change.Object)})
		} else {
			h.callbacks.OnDelete(h.export(change.Object))
		}
	case dynamic.Synced:
		h.setSynced()
	default: // the objects stay while their kind is not served
	}
}

// resyncRounds selects the resyncs of a cache for a handler with a longer resync period.
type resyncRounds struct {
	period, tick time.Duration // of the handler and the cache
	next, end    time.Time     // of the next round (begin) and of the current round (end)
}

// includes reports whether a resync at now is delivered.
func (r *resyncRounds) includes(now time.Time) bool {
	switch {
	case r.period <= 0:
		return false
	case now.Before(r.end):
		return true
	case now.Add(r.tick / 2).Before(r.next):
		return false
	}
	r.next = now.Add(r.period)
	r.end = now.Add(r.tick / 2)
	return true
}
