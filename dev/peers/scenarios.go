package main

import (
	"time"

	"github.com/anykind/anykind/dev/peers/observe"
)

// scenario is an issue of kubernetes/kubernetes.
type scenario struct {
	issue   int
	foundBy string // the author of the issue, as GitHub has it
	text    string
	kind    kind // configMaps by default
	// play plays the scenario, and returns the evidence of the bug, or "".
	play func(t *trial) (shown string, err error)
}

const (
	goesBack = "no version goes back"
	returned = "no object returns after its deletion"
	lasting  = "every change that lasts is delivered"
)

// slow is the time for each change in a store with a backlog.
const slow = 5 * time.Millisecond

// backlog is the number of objects in the backlog. The backlog takes more than two seconds: client-go waits a second before a relist.
const backlog = 500

var scenarios = []scenario{
	{issue: 27004, foundBy: "hongchaodeng", play: deletedInBacklog,
		text: "An object is created and deleted while the store still handles the initial list."},
	{issue: 59848, foundBy: "smarterclayton", play: restartedAtStaleServer,
		text: "A client restarts, and its requests go to an API server whose watch cache is behind: a deleted object is there again."},
	{issue: 79610, foundBy: "liggitt", kind: widgets, play: definitionDeleted,
		text: "A definition is deleted while the connection is broken: its objects stay, and requests get 404 for ever."},
	{issue: 83911, foundBy: "matte21", play: recreatedInBacklog,
		text: "An object is deleted, and created again before a relist, while the store has a backlog."},
	{issue: 86015, foundBy: "squeed", play: changedBeforeRelist,
		text: "An object changes before a relist, and only some handlers have a resync period."},
	{issue: 87957, foundBy: "liggitt", play: unchangedBeforeRelist,
		text: "A relist delivers objects again that have not changed."},
	{issue: 91073, foundBy: "rkojedzinszky", play: func(t *trial) (string, error) { return tooLarge(t, false) },
		text: "A relist gets \"Too large resource version\" from a server that has not reached that resourceVersion, again and again."},
	{issue: 94316, foundBy: "janeczku", play: func(t *trial) (string, error) { return tooLarge(t, true) },
		text: "The same with a server before 1.18.6, whose error has a cause without a reason."},
	{issue: 102718, foundBy: "xiaoanyunfei", play: windowTooSmall,
		text: "The watch cache forgets the resourceVersion of a list before the list ends: each list is followed by the next one."},
	{issue: 107133, foundBy: "shyamjvs", play: rejectedAtReconnects,
		text: "Each reconnection to a server without changes of the resource costs a rejected list and a list from etcd."},
	{issue: 115658, foundBy: "odinuge", play: removedInBacklog,
		text: "An object is created, and deleted before a relist, while its creation is still in the backlog of the store."},
	{issue: 121363, foundBy: "p0lyn0mial", play: watchListDiffers,
		text: "The watch cache has lost a deletion: a WatchList has an object that a list from etcd has not."},
	{issue: 123072, foundBy: "mengqiy", play: deletionLost,
		text: "The watch cache loses a deletion while it is watched, and a healthy server follows."},
	{issue: 129683, foundBy: "likakuli", play: cutInFrame,
		text: "A protobuf watch that breaks in the middle of an event causes a relist."},
	{issue: 130767, foundBy: "hakuna-matatah", play: readerInStore,
		text: "A reader in the store delays all changes: here it waits in an index function."},
	{issue: 135895, foundBy: "howardjohn", play: noInitialEnd,
		text: "A server ignores sendInitialEvents and never ends the initial events, as client-go's fake clients do: the cache never syncs."},
}

// deletedInBacklog is issue 27004.
func deletedInBacklog(t *trial) (string, error) {
	if err := t.beginBacklog(); err != nil {
		return "", err
	}
	t.world.put("short")
	t.world.delete("short")
	t.settle()
	return t.violated(lasting, returned), nil
}

// beginBacklog starts the observer, and returns while its store handles the initial list.
func (t *trial) beginBacklog() error {
	t.world.put(names(backlog)...)
	if err := t.start(observe.Options{Slow: slow}); err != nil {
		return err
	}
	return t.await("the first object", patience, func() bool { return len(t.events()) > 0 && t.front.current().open() > 0 })
}

// restartedAtStaleServer is issue 59848.
func restartedAtStaleServer(t *trial) (string, error) {
	if err := t.begin(observe.Options{}); err != nil {
		return "", err
	}
	t.world.put("pod")
	frontier := t.world.now()
	if err := t.await("the creation", patience, t.delivered); err != nil {
		return "", err
	}
	t.world.delete("pod")
	if err := t.await("the deletion", patience, t.delivered); err != nil {
		return "", err
	}
	t.stop()
	stale := newServer(t.world, t.server.kind)
	stale.frontier = frontier
	t.front.use(stale)
	if err := t.start(observe.Options{}); err != nil {
		return "", err
	}
	_ = t.await("an object of the stale server", 2*time.Second, func() bool { return t.has(observe.Added, "pod") })
	stale.set(func() { stale.frontier = 0 })
	t.settle()
	return t.violated(returned, goesBack, lasting), nil
}

// definitionDeleted is issue 79610.
func definitionDeleted(t *trial) (string, error) {
	if err := t.begin(observe.Options{}); err != nil {
		return "", err
	}
	t.front.interrupt("", func() {
		t.world.delete(names(3)...)
		t.server.set(func() { t.server.isGone = true })
	})
	t.settle()
	return t.violated(lasting), nil
}

// recreatedInBacklog is issue 83911.
func recreatedInBacklog(t *trial) (string, error) {
	if err := t.beginBacklog(); err != nil {
		return "", err
	}
	last := names(backlog)[backlog-1]
	t.world.delete(last)
	time.Sleep(100 * time.Millisecond) // the deletion is received, and not yet handled
	t.front.expire(func() { t.world.put(last) })
	t.settle()
	return t.violated(lasting), nil
}

// removedInBacklog is issue 115658.
func removedInBacklog(t *trial) (string, error) {
	if err := t.beginBacklog(); err != nil {
		return "", err
	}
	t.world.put("short")
	time.Sleep(100 * time.Millisecond) // the creation is received, and not yet handled
	t.front.expire(func() { t.world.delete("short") })
	// Before the creation is handled, nothing is missing. So the backlog and the relist come first.
	if err := t.watched(); err != nil {
		return "", err
	}
	time.Sleep(2 * backlog * slow)
	t.settle()
	return t.violated(lasting, returned), nil
}

// changedBeforeRelist is issue 86015.
func changedBeforeRelist(t *trial) (string, error) {
	if err := t.begin(observe.Options{Resync: time.Second}); err != nil {
		return "", err
	}
	time.Sleep(2500 * time.Millisecond) // two resyncs of the second handler
	t.front.expire(func() { t.world.put("object-001", "new") })
	t.settle()
	return t.violated(lasting), nil
}

// unchangedBeforeRelist is issue 87957.
func unchangedBeforeRelist(t *trial) (string, error) {
	if err := t.begin(observe.Options{}); err != nil {
		return "", err
	}
	t.front.expire(func() { t.world.put("new") })
	t.settle()
	return t.repeated(), nil
}
