package main

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// namespace is the namespace of all objects.
const namespace = "shop"

// change is a change of an object in etcd.
type change struct {
	revision  int64
	name, uid string
	isCreated bool
	isDeleted bool
}

// world is etcd: all changes of one resource. Servers wait for its changes.
type world struct {
	mu       sync.Mutex
	changes  []change
	revision int64
	uids     int
	changed  chan struct{} // closed at the next change of anything
}

func newWorld() *world { return &world{revision: 100, changed: make(chan struct{})} }

// signal wakes all streams. The caller holds mu.
func (w *world) signal() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// wake wakes all streams after a change of a server.
func (w *world) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.signal()
}

// put creates or updates objects.
func (w *world) put(names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stored := stateAt(w.changes, w.revision)
	for _, name := range names {
		w.revision++
		last, isStored := stored[name]
		if !isStored {
			w.uids++
			last.uid = fmt.Sprintf("uid-%d", w.uids)
		}
		last = change{revision: w.revision, name: name, uid: last.uid, isCreated: !isStored}
		w.changes = append(w.changes, last)
		stored[name] = last
	}
	w.signal()
}

// delete deletes objects.
func (w *world) delete(names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stored := stateAt(w.changes, w.revision)
	for _, name := range names {
		w.revision++
		w.changes = append(w.changes, change{revision: w.revision, name: name, uid: stored[name].uid, isDeleted: true})
	}
	w.signal()
}

// advance raises the revision by changes of other resources.
func (w *world) advance(revisions int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revision += revisions
	w.signal()
}

// snapshot returns all changes, the revision, and a channel closed at the next change.
func (w *world) snapshot() (changes []change, revision int64, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changes[:len(w.changes):len(w.changes)], w.revision, w.changed
}

func (w *world) now() int64 {
	_, revision, _ := w.snapshot()
	return revision
}

// stateAt returns the last change of each object existing at a revision.
func stateAt(changes []change, revision int64) map[string]change {
	state := map[string]change{}
	for _, c := range changes {
		if c.revision > revision {
			break
		}
		state[c.name] = c
		if c.isDeleted {
			delete(state, c.name)
		}
	}
	return state
}

// sorted returns the changes of a state by name.
func sorted(state map[string]change) (changes []change) {
	for _, name := range slices.Sorted(maps.Keys(state)) {
		changes = append(changes, state[name])
	}
	return changes
}

// names returns n names of objects.
func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("object-%03d", i))
	}
	return all
}
