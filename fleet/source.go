package fleet

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/transport"
)

// Source adds, changes and removes clusters until ctx ends. It calls Synced once it has set the initial clusters. It may return nil if
// its clusters do not change any more. After an error it is called again. Any function can be a source:
//
//	func(ctx context.Context, clusters *fleet.Clusters) error {
//		for event := range inventory.Watch(ctx) {
//			clusters.Set(event.Name, event.Config)
//		}
//		return nil
//	}
type Source func(ctx context.Context, clusters *Clusters) error

// Clusters are the clusters of a [Source]. It is safe for concurrent use.
type Clusters struct {
	fleet *Fleet
	run   Source

	// The fleet's lock guards the fields below.
	own       map[string]claim
	set       map[string]struct{} // since the call of run, until Synced
	hasSynced bool
	err       error // of the last call of run
}

// claim is the configuration of a cluster by a source.
type claim struct {
	cfg   *transport.Config
	err   error // in place of cfg
	order int   // among all claims of the fleet: the last claim of a cluster is used
}

// Set adds a cluster, or replaces its configuration. An equal configuration changes nothing. A different one reconnects this cluster
// alone. cfg must not be changed afterwards. A name that two sources set has the configuration set last. When its source
// removes it, the cluster has the configuration of the remaining source. A cluster without a configuration fails, as with SetError.
func (c *Clusters) Set(name string, cfg *transport.Config) {
	if cfg == nil {
		c.SetError(name, nil)
		return
	}
	c.put(name, cfg, nil)
}

// SetError adds a cluster without a usable configuration, or replaces the configuration. The cluster fails with err.
func (c *Clusters) SetError(name string, err error) {
	c.put(name, nil, cmp.Or(err, errors.New("no configuration")))
}

func (c *Clusters) put(name string, cfg *transport.Config, err error) {
	f := c.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claims++
	c.own[name] = claim{cfg, err, f.claims}
	if c.set != nil {
		c.set[name] = struct{}{}
	}
	if existing := f.clusters[name]; existing != nil {
		existing.set(cfg, err)
		return
	}
	f.clusters[name] = newCluster(f, name, cfg, err)
	f.changed.notify()
}

// Remove removes a cluster of this source. It stays in the fleet while a further source has it. Otherwise caches of the fleet remove its
// objects with changes of type cache.Removed.
func (c *Clusters) Remove(name string) {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	c.remove(name)
}

// remove is called with the fleet's lock.
func (c *Clusters) remove(name string) {
	f := c.fleet
	removed, isOwn := c.own[name]
	if !isOwn {
		return
	}
	delete(c.own, name)
	if last, isShared := f.lastClaim(name); isShared {
		if removed.order > last.order { // it was used
			f.clusters[name].set(last.cfg, last.err)
		}
		return
	}
	f.clusters[name].remove()
	delete(f.clusters, name)
	f.changed.notify()
}

// lastClaim returns the last claim of a cluster. It is called with f.mu.
func (f *Fleet) lastClaim(name string) (last claim, found bool) {
	for _, source := range f.sources {
		if own, isOwn := source.own[name]; isOwn && own.order > last.order {
			last = own
			found = true
		}
	}
	return last, found
}

// Synced reports that all clusters have been set. It removes clusters of earlier calls of the source that this call has not set.
func (c *Clusters) Synced() {
	f := c.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	c.hasSynced = true
	c.err = nil
	if c.set != nil {
		for name := range c.own {
			if _, isSet := c.set[name]; !isSet {
				c.remove(name)
			}
		}
		c.set = nil
	}
	f.changed.notify()
}

// runUntil calls the source until it returns nil or ctx ends.
func (c *Clusters) runUntil(ctx context.Context) {
	for n := 1; ; n++ {
		c.fleet.mu.Lock()
		c.set = map[string]struct{}{}
		c.fleet.mu.Unlock()
		start := time.Now()
		err := c.callSource(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			c.Synced()
			return
		}
		c.fleet.mu.Lock()
		c.err = err
		c.fleet.changed.notify()
		c.fleet.mu.Unlock()
		c.fleet.opts.Logger.Error("a source of clusters has failed: its clusters stay, and it is called again", "error", err)
		if time.Since(start) > sourceBackoff.Max {
			n = 1
		}
		if sourceBackoff.Wait(ctx, n) != nil {
			return
		}
	}
}

func (c *Clusters) callSource(ctx context.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &cache.PanicError{Where: "a source of clusters", Value: value, Stack: debug.Stack()}
		}
	}()
	return retry.WithContextError(ctx, c.run(ctx, c))
}
