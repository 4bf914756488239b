package cache

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/resourceversion"
)

// Run's goroutine evaluates the conditions of waiters. Waiters are indexed by resourceVersion and by key, so the cost of an event
// does not depend on the number of waiters: an event evaluates the waiters for reached versions of its stream and the waiters for
// its object. Further changes of a stream's state are rare and evaluate all waiters.

// waiter is a goroutine blocked on a condition. Without version and key, the condition depends on the streams' states alone.
type waiter struct {
	condition func() bool          // called under the cache's lock
	stream    string               // of version
	version   string               // "" for none
	key       types.NamespacedName // of an object; may be zero
	ready     chan struct{}        // closed once the condition holds

	atProgress bool // the condition depends on the time of progress
}

// waiters are the waiters of a cache. The cache's lock guards them.
type waiters struct {
	all       map[*waiter]struct{}
	byVersion map[string][]*waiter // by stream; the lowest version first
	byKey     map[types.NamespacedName][]*waiter

	atProgress map[*waiter]struct{}
}

func (ws *waiters) add(w *waiter) {
	if ws.all == nil {
		*ws = waiters{map[*waiter]struct{}{}, map[string][]*waiter{}, map[types.NamespacedName][]*waiter{}, map[*waiter]struct{}{}}
	}
	ws.all[w] = struct{}{}
	if w.atProgress {
		ws.atProgress[w] = struct{}{}
	}
	if w.version != "" {
		of := ws.byVersion[w.stream]
		i, _ := slices.BinarySearchFunc(of, w.version, compareVersion)
		ws.byVersion[w.stream] = slices.Insert(of, i, w)
	}
	if w.key != (types.NamespacedName{}) {
		ws.byKey[w.key] = append(ws.byKey[w.key], w)
	}
}

// remove removes w, and reports whether w was still waiting.
func (ws *waiters) remove(w *waiter) bool {
	if _, found := ws.all[w]; !found {
		return false
	}
	delete(ws.all, w)
	delete(ws.atProgress, w)
	of := ws.byVersion[w.stream]
	for i, _ := slices.BinarySearchFunc(of, w.version, compareVersion); i < len(of) && of[i].version == w.version; i++ {
		if of[i] == w {
			ws.byVersion[w.stream] = slices.Delete(of, i, i+1)
			break
		}
	}
	if others := slices.DeleteFunc(ws.byKey[w.key], func(other *waiter) bool { return other == w }); len(others) > 0 {
		ws.byKey[w.key] = others
	} else {
		delete(ws.byKey, w.key)
	}
	return true
}

// compareVersion compares w.version with version. Both must be comparable.
func compareVersion(w *waiter, version string) int {
	order, _ := resourceversion.Compare(w.version, version)
	return order
}

// evaluate wakes and removes w if its condition holds.
func (ws *waiters) evaluate(w *waiter) {
	if w.condition() {
		close(w.ready)
		ws.remove(w)
	}
}

// evaluateAll evaluates all waiters after a change of a stream's state.
func (ws *waiters) evaluateAll() {
	for w := range ws.all {
		ws.evaluate(w)
	}
}

// evaluateKey evaluates the waiters for key.
func (ws *waiters) evaluateKey(key types.NamespacedName) {
	for _, w := range slices.Clone(ws.byKey[key]) {
		ws.evaluate(w)
	}
}

// evaluateReached evaluates the waiters for progress and those with a version <= version, and removes the latter from byVersion.
func (ws *waiters) evaluateReached(stream, version string) {
	for w := range ws.atProgress {
		ws.evaluate(w)
	}
	of := ws.byVersion[stream]
	reached := 0
	for reached < len(of) && isReached(version, of[reached].version) {
		reached++
	}
	if reached == 0 {
		return
	}
	ws.byVersion[stream] = of[reached:]
	for i, w := range of[:reached] {
		ws.evaluate(w)
		of[i] = nil
	}
}
