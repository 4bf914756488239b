package workqueue

import (
	"cmp"
	"slices"
)

// readyList holds the ready items: a list for each priority, the highest first. Most queues have one or two priorities, so the
// time of add and get does not depend on the number of keys. Items are numbered as they are added: each list is sorted, and the
// oldest item is the first item of a list.
type readyList[K comparable] struct {
	lists    []*priorityList[K] // by falling priority; empty lists are removed, except the last list
	count    int
	sequence uint64 // of the last added item
	passes   int    // calls of pop since the last forced return of the oldest item
}

// starvationInterval: every starvationInterval-th pop returns the oldest key.
const starvationInterval = 16

type priorityList[K comparable] struct {
	priority int
	root     item[K] // of the ring of items: the first is next, the last is prev
}

func (r *readyList[K]) push(it *item[K]) {
	list := r.listOf(it.priority)
	it.list = list
	it.prev = list.root.prev
	it.next = &list.root
	it.prev.next = it
	it.next.prev = it
	r.sequence++
	it.sequence = r.sequence
	r.count++
}

func (r *readyList[K]) listOf(priority int) *priorityList[K] {
	if r.count == 0 && len(r.lists) > 0 {
		r.lists[0].priority = priority // the empty list
	}
	if len(r.lists) > 0 && r.lists[0].priority == priority {
		return r.lists[0]
	}
	i, found := slices.BinarySearchFunc(r.lists, priority, func(list *priorityList[K], priority int) int {
		return cmp.Compare(priority, list.priority)
	})
	if !found {
		list := &priorityList[K]{priority: priority}
		list.root.prev = &list.root
		list.root.next = &list.root
		r.lists = slices.Insert(r.lists, i, list)
	}
	return r.lists[i]
}

func (r *readyList[K]) pop() *item[K] {
	if r.count == 0 {
		return nil
	}
	it := r.lists[0].root.next
	if r.passes++; len(r.lists) == 1 {
		r.passes = 0
	} else if r.passes == starvationInterval {
		r.passes = 0
		it = r.oldest()
	}
	r.remove(it)
	return it
}

// oldest returns the item with the lowest sequence; there must be an item.
func (r *readyList[K]) oldest() *item[K] {
	return slices.MinFunc(r.lists, func(a, b *priorityList[K]) int { return cmp.Compare(a.root.next.sequence, b.root.next.sequence) }).root.next
}

func (r *readyList[K]) remove(it *item[K]) {
	list := it.list
	it.prev.next = it.next
	it.next.prev = it.prev
	it.list = nil
	it.prev = nil
	it.next = nil
	r.count--
	if list.root.next == &list.root && len(r.lists) > 1 {
		r.lists = slices.DeleteFunc(r.lists, func(other *priorityList[K]) bool { return other == list })
	}
}
