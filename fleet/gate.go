package fleet

import (
	"context"
	"slices"
	"sync"

	"github.com/anykind/anykind/controller/workqueue"
)

// gate admits the keys of a cluster once all caches have synced the cluster, and up to the limit of concurrent reconciles. Other keys are
// parked, without a worker.
type gate struct {
	triggers []Trigger
	limit    int

	mu       sync.Mutex
	queue    *workqueue.Queue[Key]
	clusters map[string]*clusterGate
	left     map[Key]struct{} // objects that have left the shard, and have not returned
}

type clusterGate struct {
	running  int
	parked   []Key       // in order, with keys that are parked no more
	priority map[Key]int // of parked keys
}

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
		if g.hasSynced(key.Cluster) { // the cluster is in the fleet
			g.left[key] = struct{}{}
		}
		if c := g.clusters[key.Cluster]; c != nil {
			delete(c.priority, key)
		}
		return
	}
	if isOwn {
		delete(g.left, key)
	}
	g.queue.AddWithOptions(key, &workqueue.AddOptions{Priority: priority})
}

func (g *gate) hasSynced(cluster string) bool {
	return !slices.ContainsFunc(g.triggers, func(t Trigger) bool { return !t.hasSynced(cluster) })
}

func (g *gate) admit(key Key, priority int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.clusters[key.Cluster]
	if _, hasLeft := g.left[key]; hasLeft {
		g.queue.Forget(key)
		if c != nil && c.running < g.limit { // no release follows
			g.resume(key.Cluster, c, 1)
		}
		return false
	}
	if c == nil {
		c = &clusterGate{priority: map[Key]int{}}
		g.clusters[key.Cluster] = c
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
	if c.running == 0 && len(c.parked) == 0 {
		delete(g.clusters, cluster)
	}
}
