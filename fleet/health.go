package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/internal/retry"
)

// State is the state of a cluster in a cache.
type State string

// States of clusters.
const (
	// Connecting is the state until the initial list is complete.
	Connecting State = "connecting"
	// Synced is the state of a cluster with current objects.
	Synced State = "synced"
	// Failing is the state of a cluster whose stream is interrupted, or that has not responded for ten seconds since the start. Objects
	// are kept.
	Failing State = "failing"
)

// Status is the state of a cluster in a cache.
type Status struct {
	Cluster string
	State   State
	// Since is the time of the change to State.
	Since time.Time
	// Err is why the cluster is failing.
	Err error
}

// maxSilence is the time without a response after which a connecting cluster is failing.
const maxSilence = 10 * time.Second

// Clusters returns the states of all clusters, sorted by name.
func (c *Cache[T]) Clusters() []Status {
	var all []Status
	for _, cluster := range c.all() {
		all = append(all, cluster.status())
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Cluster, b.Cluster) })
	return all
}

func (c *clusterCache[T]) status() Status {
	hasSynced := c.cache.HasSynced()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Cluster: c.name, State: Connecting, Since: c.since}
	switch {
	case len(c.failures) > 0:
		s.State = Failing
		s.Err = c.failures[0].err
	case hasSynced:
		s.State = Synced
	case c.attempted && !c.responded && time.Since(c.since) >= maxSilence:
		s.State = Failing
		s.Since = c.since.Add(maxSilence)
		s.Err = fmt.Errorf("no response for %s", maxSilence)
	default:
	}
	return s
}

// maxHealthClusters is the number of failing clusters in the error of Health.
const maxHealthClusters = 10

// Health returns nil if all clusters have synced and none is failing. While only some clusters are failing, it returns a
// *[cache.RejectedError] with the reasons, which cache.HealthHandler accepts: a dead cluster must not make this program unready.
// Any further error means that the cache is not usable: Run has not been called or has ended, the clusters are not known or have not
// synced or failed for the first time, or all clusters are failing. Clusters that are added later do not count while they connect.
func (c *Cache[T]) Health() error {
	_, err := c.health()
	return err
}

// health also returns the time until a cluster that connects now is failing, at most; 0 means that no cluster connects.
func (c *Cache[T]) health() (wait time.Duration, err error) {
	select {
	case <-c.stopped:
		return 0, fmt.Errorf("cache of %s: stopped: %w", c.resource, c.err)
	default:
	}
	if !c.started.Load() {
		return maxSilence, fmt.Errorf("cache of %s: not synced: Run has not been called", c.resource)
	}
	isUpdated := c.fleet.hasSynced() && c.hasUpdated()
	if !isUpdated {
		wait = maxSilence
	}
	var failing []Status
	count := 0
	connecting := 0
	for _, s := range c.Clusters() {
		count++
		switch s.State {
		case Failing:
			failing = append(failing, s)
		case Connecting:
			connecting++
			wait = max(time.Until(s.Since.Add(maxSilence)), 100*time.Millisecond)
		case Synced:
		}
	}
	c.mu.Lock()
	c.settled = c.settled || isUpdated && connecting == 0
	settled := c.settled
	c.mu.Unlock()
	switch {
	case !settled && !isUpdated:
		return wait, fmt.Errorf("cache of %s: not synced: the clusters are not known yet", c.resource)
	case !settled:
		return wait, fmt.Errorf("cache of %s: not synced: %d of %d clusters are connecting", c.resource, connecting, count)
	case len(failing) == 0:
		return wait, nil
	}
	reasons := joinReasons(failing)
	if len(failing) == count {
		return wait, fmt.Errorf("cache of %s: all clusters are failing: %w", c.resource, reasons)
	}
	return wait, &cache.RejectedError{Cache: c.resource, Err: fmt.Errorf("%d of %d clusters are failing: %w", len(failing), count, reasons)}
}

// hasUpdated reports whether the cache has the clusters that the fleet selects.
func (c *Cache[T]) hasUpdated() bool {
	selected := c.fleet.selected()
	c.mu.RLock()
	defer c.mu.RUnlock()
	if len(selected) != len(c.clusters) {
		return false
	}
	for name, member := range selected {
		if existing := c.clusters[name]; existing == nil || existing.cluster != member {
			return false
		}
	}
	return true
}

// joinReasons joins the errors of clusters into a single line.
func joinReasons(failing []Status) (joined error) {
	for i, s := range failing {
		err := fmt.Errorf("%s since %s: %w", s.Cluster, s.Since.UTC().Format(time.RFC3339), s.Err)
		switch {
		case i == maxHealthClusters:
			return fmt.Errorf("%w; …", joined)
		case joined != nil:
			joined = fmt.Errorf("%w; %w", joined, err)
		default:
			joined = err
		}
	}
	return joined
}

// WaitForSync waits until every cluster has synced or is failing, also a cluster that was added or selected since. A cluster that does
// not respond counts as failing after ten seconds. If some clusters are failing, it returns a *[cache.RejectedError] as [Cache.Health]
// does, and Run continues to connect to them. It returns Run's error if Run ends first, and ctx's error if ctx ends first. A controller
// of [Run] needs no WaitForSync: it reconciles each cluster as soon as the cluster has synced.
func (c *Cache[T]) WaitForSync(ctx context.Context) error {
	changed, stop := c.changed.subscribe()
	defer stop()
	fleetChanged, stopFleet := c.fleet.changed.subscribe()
	defer stopFleet()
	for {
		wait, err := c.health()
		if wait == 0 {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-fleetChanged:
		case <-timer.C:
		case <-c.stopped:
			timer.Stop()
			return c.err
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w; %w", retry.ContextError(ctx), cmp.Or(err, errors.New("not synced")))
		}
		timer.Stop()
	}
}
