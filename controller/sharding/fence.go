package sharding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/internal/fence"
	"github.com/anykind/anykind/shard"
)

// Cache is a cache whose shard the group sets: a *cache.Cache with Options.Shard of the group's field.
type Cache interface {
	SetShard(selector shard.Selector) error
	WaitForSync(ctx context.Context) error
}

// Fence lets a controller work on the keys of this member alone. It is safe for concurrent use.
type Fence struct {
	group   *Group
	feeds   []*feed
	onReady func()
}

// task is work on a hash.
type task struct {
	hash   uint64
	cancel context.CancelCauseFunc
}

// feed keeps the shard of a cache. A range that is lost and gained again is listed again: the cache may lag behind the work of its
// owner in the meantime.
type feed struct {
	cache   Cache
	ready   shard.Ranges // the cache has all objects
	lost    shard.Ranges // left ready since the last change of the cache's shard
	changed chan struct{}
}

// NewFence returns a fence for a controller that reads the caches. The group sets their shards, also of caches that several controllers
// share. onReady is called when work may begin that could not begin before; it must be quick. It is an error outside of Run's work.
func (g *Group) NewFence(onReady func(), caches ...Cache) (*Fence, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.startFeed == nil {
		return nil, fmt.Errorf("sharding %s %q: a controller needs Run, and must run within its work", g.leases, g.name)
	}
	f := &Fence{group: g, onReady: onReady}
	for _, c := range caches {
		if g.feeds[c] == nil {
			added := &feed{cache: c, changed: make(chan struct{}, 1)}
			added.signal()
			g.feeds[c] = added
			g.startFeed(added)
		}
		f.feeds = append(f.feeds, g.feeds[c])
	}
	g.fences[f] = struct{}{}
	return f, nil
}

// Close ends the calls of onReady.
func (f *Fence) Close() {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	delete(f.group.fences, f)
}

// Owns reports whether this process has the hash: work on it may begin, now or once the caches have its objects.
func (f *Fence) Owns(hash uint64) bool {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	return f.group.held.Contains(hash)
}

// Begin begins work on a hash, unless ok is false. The caller must call end when the work has ended: the hash is not handed over before.
// The returned ctx ends with leaderelection.ErrLeaseLost as its cause when the work must end at once, and no request with it is sent
// after the deadline.
func (f *Fence) Begin(ctx context.Context, hash uint64) (_ context.Context, end func(), ok bool) {
	g := f.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if !f.admits(hash) {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancelCause(fence.WithCheck(ctx, g.checkDeadline))
	t := &task{hash, cancel}
	g.tasks[t] = struct{}{}
	return ctx, func() { g.end(t) }, true
}

// Admits reports whether Begin would succeed.
func (f *Fence) Admits(hash uint64) bool {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	return f.admits(hash)
}

func (f *Fence) admits(hash uint64) bool {
	g := f.group
	if g.draining || !g.held.Contains(hash) || g.deadline.Remaining() <= 0 {
		return false
	}
	return !slices.ContainsFunc(f.feeds, func(feed *feed) bool { return !feed.ready.Contains(hash) })
}

func (g *Group) checkDeadline() error {
	if g.deadline.Remaining() > 0 {
		return nil
	}
	return errLost("not renewed within %s", g.opts.RenewDeadline)
}

func (g *Group) end(t *task) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.tasks, t)
	t.cancel(nil)
	close(g.taskEnded)
	g.taskEnded = make(chan struct{})
	if g.draining || !g.kept.Contains(t.hash) {
		g.signal()
	}
}

// isBusy reports whether there is work on any of the hashes. Callers hold the lock.
func (g *Group) isBusy(ranges shard.Ranges) bool {
	for t := range g.tasks {
		if ranges.Contains(t.hash) {
			return true
		}
	}
	return false
}

// waitIdle waits until there is no work on the hashes.
func (g *Group) waitIdle(ctx context.Context, ranges shard.Ranges) error {
	for {
		g.mu.Lock()
		busy := g.isBusy(ranges)
		ended := g.taskEnded
		g.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// setOwned records the segments of a round, sent at sentAt. Work on lost segments ends.
func (g *Group) setOwned(owned shard.Ranges, sentAt time.Time) {
	g.mu.Lock()
	hadPassed := g.deadline.Remaining() <= 0
	g.deadline.Renew(sentAt)
	lost := g.owned.Subtract(owned)
	g.health.Lost += len(lost)
	g.health.Gained += len(owned.Subtract(g.owned))
	g.owned = owned
	g.cancelTasks(lost, errLost("the segment has another owner"))
	g.updateHeld()
	g.startExpiry()
	fences := g.copyFences()
	g.mu.Unlock()
	if hadPassed {
		notify(fences)
	}
}

// setKept records the segments without a next owner: no work on other segments begins.
func (g *Group) setKept(kept shard.Ranges) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kept = kept
	g.updateHeld()
}

// setReleased records the segments after their handover.
func (g *Group) setReleased(released shard.Ranges) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.health.Released += len(released.Intersect(g.owned))
	g.owned = g.owned.Subtract(released)
	g.updateHeld()
}

// updateHeld narrows the caches' ready ranges at once, and has the caches follow. Callers hold the lock.
func (g *Group) updateHeld() {
	held := g.owned.Intersect(g.kept)
	if slices.Equal(held, g.held) {
		return
	}
	lost := g.held.Subtract(held)
	g.held = held
	for _, f := range g.feeds {
		f.ready = f.ready.Subtract(lost)
		f.lost = shard.Union(append(slices.Clone(f.lost), lost...)...)
		f.signal()
	}
}

func (f *feed) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// feed keeps the shard of a cache until ctx or the cache ends.
func (g *Group) feed(ctx context.Context, f *feed) {
	applied := shard.Ranges{}
	for {
		select {
		case <-f.changed:
		case <-ctx.Done():
			return
		}
		g.mu.Lock()
		held := g.held
		lost := f.lost
		f.lost = nil
		g.mu.Unlock()
		err := g.waitIdle(ctx, lost) // a running reconcile must not find its object missing
		if err == nil && len(lost) > 0 {
			err = f.apply(ctx, g.opts.By, applied.Subtract(lost))
		}
		if err == nil {
			err = f.apply(ctx, g.opts.By, held)
		}
		if err != nil {
			g.removeFeed(ctx, f, err)
			return
		}
		applied = held
		g.setReady(f, held)
	}
}

func (f *feed) apply(ctx context.Context, field shard.Field, ranges shard.Ranges) error {
	if err := f.cache.SetShard(shard.New(field, ranges...)); err != nil {
		return err
	}
	err := f.cache.WaitForSync(ctx)
	var rejected *cache.RejectedError
	if errors.As(err, &rejected) { // the controller logs it
		return nil
	}
	return err
}

// removeFeed removes the feed of an ended cache.
func (g *Group) removeFeed(ctx context.Context, f *feed, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.ready = nil
	if g.feeds[f.cache] == f {
		delete(g.feeds, f.cache)
	}
	if ctx.Err() == nil {
		g.log.Debug("the shard of a cache is not kept any more", "error", err)
	}
}

// setReady records a cache's complete ranges.
func (g *Group) setReady(f *feed, ranges shard.Ranges) {
	g.mu.Lock()
	f.ready = ranges.Subtract(f.lost)
	fences := g.copyFences()
	g.mu.Unlock()
	notify(fences)
}

// copyFences returns the fences. Callers hold the lock.
func (g *Group) copyFences() (fences []*Fence) {
	for f := range g.fences {
		fences = append(fences, f)
	}
	return fences
}

func notify(fences []*Fence) {
	for _, f := range fences {
		f.onReady()
	}
}

// startExpiry ends all work at the deadline. Callers hold the lock.
func (g *Group) startExpiry() {
	remaining := max(g.deadline.Remaining(), 0)
	if g.expiry == nil {
		g.expiry = time.AfterFunc(remaining, g.expire)
		return
	}
	g.expiry.Reset(remaining)
}

func (g *Group) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.member == "":
	case g.deadline.Remaining() > 0:
		g.startExpiry()
	default:
		err := g.checkDeadline()
		if g.lastErr != nil {
			err = fmt.Errorf("%w: %w", err, g.lastErr)
		}
		g.cancelTasks(shard.All(), err)
		g.log.Error("the work is suspended: the member's lease is not renewed", "member", g.member, "error", err)
	}
}

func (g *Group) stopExpiry() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.expiry != nil {
		g.expiry.Stop()
	}
}

// cancelTasks ends the work on hashes. Callers hold the lock.
func (g *Group) cancelTasks(hashes shard.Ranges, cause error) {
	for t := range g.tasks {
		if hashes.Contains(t.hash) {
			t.cancel(cause)
		}
	}
}
