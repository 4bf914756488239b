package fleet

import (
	"context"
	"slices"
	"sync"

	"github.com/anykind/anykind/controller/workqueue"
)

// gate admits the keys of a cluster once all caches have synced the cluster, and up to the limit of concurrent reconciles. Other keys are
// parked, without a worker.
//
// The queue may still have the key of an object that has left the shard: ready, delayed, or with a worker. The gate records such keys and
// does not admit them. A sweep forgets the keys that the queue does not have. It follows half as many changes as the last sweep has kept
// keys. So the memory is bounded by the number of keys in the queue.
type gate struct {
	triggers []Trigger
	limit    int

	mu       sync.Mutex
	queue    *workqueue.Queue[Key]
	clusters map[string]*clusterGate
}

type clusterGate struct {
	running  int
	parked   []Key       // in order, with keys that are parked no more
	priority map[Key]int // of parked keys

	left       map[Key]struct{} // objects that have left the shard and have not returned, while the queue has their keys
	untilSweep int              // changes of left before the next sweep
}

// minSweep is the minimum number of changes of left before a sweep.
const minSweep = 64

func (g *gate) enqueue(parent context.Context, queue *workqueue.Queue[Key]) error {
	g.mu.Lock()
	g.queue = queue
	g.mu.Unlock()
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	var all sync.WaitGroup
	for i := range g.triggers {
		all.Go(func() { stop(g.triggers[i].enqueue(ctx, g, &g.triggers[i])) })
	}
	all.Wait()
	return context.Cause(ctx)
}

// add adds a key of a change to the queue. A removed object of the reconciled resource is not reconciled.
func (g *gate) add(key Key, priority int, isOwn, isRemoved bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if isOwn && isRemoved {
		g.queue.Forget(key)
		if c := g.clusters[key.Cluster]; c != nil {
			delete(c.priority, key)
		}
		if g.triggers[0].hasCluster(key.Cluster) {
			c := g.cluster(key.Cluster)
			c.left[key] = struct{}{}
			c.sweepIfDue(g.queue)
		}
		return
	}
	if c := g.clusters[key.Cluster]; isOwn && c != nil {
		delete(c.left, key)
	}
	g.queue.AddWithOptions(key, &workqueue.AddOptions{Priority: priority})
}

// cluster returns the gate of a cluster, added if needed.
func (g *gate) cluster(name string) *clusterGate {
	c := g.clusters[name]
	if c == nil {
		c = &clusterGate{priority: map[Key]int{}, left: map[Key]struct{}{}, untilSweep: minSweep}
		g.clusters[name] = c
	}
	return c
}

// forgetRemoved forgets the keys of clusters that are not in the fleet. The queue drops its keys of such a cluster, unless the cluster is
// added again before. So left is only swept.
func (g *gate) forgetRemoved() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, c := range g.clusters {
		if g.triggers[0].hasCluster(name) {
			continue
		}
		c.parked = nil
		for key := range c.priority {
			g.queue.Forget(key)
		}
		clear(c.priority)
		c.sweep(g.queue)
		g.resume(name, c, 0)
	}
}

// sweepIfDue is called after each change of left.
func (c *clusterGate) sweepIfDue(queue *workqueue.Queue[Key]) {
	c.untilSweep--
	if c.untilSweep <= 0 {
		c.sweep(queue)
	}
}

// sweep removes the keys from left that the queue does not have.
func (c *clusterGate) sweep(queue *workqueue.Queue[Key]) {
	queued := map[Key]struct{}{} // a map does not shrink
	for key := range c.left {
		if queue.Contains(key) {
			queued[key] = struct{}{}
		}
	}
	c.left = queued
	c.untilSweep = max(minSweep, len(queued)/2)
}

func (g *gate) hasSynced(cluster string) bool {
	return !slices.ContainsFunc(g.triggers, func(t Trigger) bool { return !t.hasSynced(cluster) })
}

func (g *gate) admit(key Key, priority int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.cluster(key.Cluster)
	if _, hasLeft := c.left[key]; hasLeft {
		g.queue.Forget(key)
		c.sweepIfDue(g.queue)
		if c.running < g.limit { // no release follows
			g.resume(key.Cluster, c, 1)
		}
		return false
	}
	if c.running < g.limit && g.hasSynced(key.Cluster) {
		c.running++
		return true
	}
	if _, isParked := c.priority[key]; !isParked {
		c.parked = append(c.parked, key)
		c.priority[key] = priority
	}
	c.priority[key] = max(c.priority[key], priority)
	return false
}

// release ends a reconcile and continues with a parked key.
func (g *gate) release(key Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.clusters[key.Cluster]
	c.running--
	g.resume(key.Cluster, c, 1)
}

// open continues with all parked keys of a cluster that has synced.
func (g *gate) open(cluster string) {
	if !g.hasSynced(cluster) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.clusters[cluster]; c != nil {
		c.sweep(g.queue)
		g.resume(cluster, c, len(c.parked))
	}
}

// resume adds the first n parked keys to the queue again.
func (g *gate) resume(cluster string, c *clusterGate, n int) {
	for n > 0 && len(c.parked) > 0 {
		key := c.parked[0]
		c.parked = c.parked[1:]
		if priority, isParked := c.priority[key]; isParked {
			delete(c.priority, key)
			g.queue.AddWithOptions(key, &workqueue.AddOptions{Priority: priority})
			n--
		}
	}
	if c.running == 0 && len(c.parked) == 0 && len(c.left) == 0 {
		delete(g.clusters, cluster)
	}
}
