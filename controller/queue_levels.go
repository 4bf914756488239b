package controller

import (
	"cmp"
	"slices"
)

// levels holds the keys that are ready: a list for each priority, the highest first. Most queues have one or two, so that
// adding and getting take the same time however many keys wait.
type levels[K comparable] struct {
	all   []*level[K] // by falling priority; a level without keys leaves, but for the last
	count int
}

type level[K comparable] struct {
	priority    int
	first, last *item[K]
}

func (l *levels[K]) push(it *item[K]) {
	of := l.of(it.priority)
	it.level, it.prev, it.next = of, of.last, nil
	if of.last != nil {
		of.last.next = it
	} else {
		of.first = it
	}
	of.last = it
	l.count++
}

// of finds the level of a priority, or makes it.
func (l *levels[K]) of(priority int) *level[K] {
	if l.count == 0 && len(l.all) > 0 {
		l.all[0].priority = priority // the one that stayed
		return l.all[0]
	}
	if len(l.all) > 0 && l.all[0].priority == priority {
		return l.all[0]
	}
	at, found := slices.BinarySearchFunc(l.all, priority, func(other *level[K], priority int) int {
		return cmp.Compare(priority, other.priority)
	})
	if !found {
		l.all = slices.Insert(l.all, at, &level[K]{priority: priority})
	}
	return l.all[at]
}

func (l *levels[K]) pop() *item[K] {
	if l.count == 0 {
		return nil
	}
	it := l.all[0].first
	l.remove(it)
	return it
}

func (l *levels[K]) remove(it *item[K]) {
	of := it.level
	if it.prev != nil {
		it.prev.next = it.next
	} else {
		of.first = it.next
	}
	if it.next != nil {
		it.next.prev = it.prev
	} else {
		of.last = it.prev
	}
	it.level, it.prev, it.next = nil, nil, nil
	l.count--
	if of.first == nil && len(l.all) > 1 {
		l.all = slices.DeleteFunc(l.all, func(other *level[K]) bool { return other == of })
	}
}
