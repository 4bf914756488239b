package controllerruntime

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// handler is an event handler of an informer and its registration. A goroutine of its own calls it with the changes of the
// cache, at its own pace.
type handler struct {
	toolscache.ResourceEventHandler
	name   string
	resync time.Duration // 0 for never
	rounds resyncRounds
	synced chan struct{} // closed when the initial list has been delivered
	once   sync.Once
	remove context.CancelFunc // nil before the start
}

// AddEventHandler implements toolscache.SharedInformer.
func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements toolscache.SharedInformer.
func (i *informer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions implements toolscache.SharedInformer. A resync period that is shorter than those from before the
// start is extended to them.
func (i *informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return nil, fmt.Errorf("handler %v was not added to shared informer because it has stopped already", h)
	}
	added := &handler{ResourceEventHandler: h, name: fmt.Sprintf("%s: %T", i.of.gvk, h), resync: i.resync, synced: make(chan struct{})}
	if options.ResyncPeriod != nil {
		added.resync = *options.ResyncPeriod
	}
	i.handlers[added] = true
	if i.ctx != nil {
		i.startHandler(added)
	}
	return added, nil
}

// RemoveEventHandler implements toolscache.SharedInformer.
func (i *informer) RemoveEventHandler(registration toolscache.ResourceEventHandlerRegistration) error {
	h, ok := registration.(*handler)
	if !ok {
		return fmt.Errorf("invalid key type %T", registration)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.handlers[h] && h.remove != nil {
		h.remove()
	}
	delete(i.handlers, h)
	return nil
}

// startHandler is called under the lock, after the start.
func (i *informer) startHandler(h *handler) {
	ctx, cancel := context.WithCancel(i.ctx)
	h.remove = cancel
	c := i.cache.Load()
	h.rounds = resyncRounds{period: h.resync, tick: i.resync, next: time.Now().Add(h.resync)}
	i.running.Go(func() {
		defer cancel()
		for change := range c.Changes(ctx) {
			h.handle(change)
		}
	})
}

func (h *handler) handle(change cache.Change[cached]) {
	switch change.Type {
	case watch.Added:
		h.OnAdd(change.Object.Object, !h.HasSynced())
	case watch.Modified:
		if change.Old != change.Object || h.rounds.includes(time.Now()) {
			h.OnUpdate(change.Old.Object, change.Object.Object)
		}
	case watch.Deleted:
		if change.FinalStateUnknown {
			h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: cache.KeyOf(change.Object).String(), Obj: change.Object.Object})
		} else {
			h.OnDelete(change.Object.Object)
		}
	case dynamic.Synced:
		h.once.Do(func() { close(h.synced) })
	default: // the objects stay while their kind is not served
	}
}

// HasSynced implements toolscache.ResourceEventHandlerRegistration.
func (h *handler) HasSynced() bool {
	select {
	case <-h.synced:
		return true
	default:
		return false
	}
}

// HasSyncedChecker implements toolscache.ResourceEventHandlerRegistration.
func (h *handler) HasSyncedChecker() toolscache.DoneChecker {
	return doneChecker{name: h.name, done: h.synced}
}

// resyncRounds chooses those resyncs of a cache that a handler gets, whose period may be longer.
type resyncRounds struct {
	period, tick time.Duration // of the handler and the cache
	next, end    time.Time     // of the round that begins next, and of the current one
}

// includes reports whether a resync at this time is delivered.
func (r *resyncRounds) includes(now time.Time) bool {
	switch {
	case r.period <= 0:
		return false
	case now.Before(r.end):
		return true
	case now.Add(r.tick / 2).Before(r.next):
		return false
	}
	r.next, r.end = now.Add(r.period), now.Add(r.tick/2)
	return true
}
