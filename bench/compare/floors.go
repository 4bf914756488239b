//go:build unix

package main

import "fmt"

const (
	// floorAim is how far anykind may be above the lowest cost.
	floorAim = 1.15
	// floorHeapAim is the same for the live heap of a cache.
	floorHeapAim = 1.1
)

// floorTasks has the task of the lowest cost for a task of anykind.
var floorTasks = map[string]string{"list": "floor-list", "whole": "floor-whole", "calls": "floor-calls", "cache-event": "floor-event"}

// floorOf returns the lowest cost of the same work, and how far anykind may be above it.
func floorOf(c cost) (floor cost, aim float64, found bool) {
	floor, aim = c, floorAim
	switch {
	case c.task == "cache" && c.figure == "held":
		floor.task, aim = "floor-cache-shared", floorHeapAim
	case c.task == "cache-lazy" && c.figure == "held":
		floor.task, aim = "floor-cache-lazy", floorHeapAim
	case c.task == "cache" && c.figure == "sync-cpu":
		floor.task = "floor-cache"
	default:
		floor.task = floorTasks[c.task]
	}
	return floor, aim, floor.task != ""
}

// withFloor returns the comparison with an aim that can be met: where the lowest cost is itself above the aim, that is as far
// above the lowest cost as floorOf says.
func (c comparison) withFloor(costOf func(cost) float64) comparison {
	floor, aim, ok := floorOf(c.ours)
	if !ok || c.theirs.task == floor.task {
		return c
	}
	if ratio := costOf(floor) / costOf(c.theirs); ratio > c.aim {
		c.what += fmt.Sprintf("; the aim of %.2f is below the floor, %.2f", c.aim, ratio)
		c.aim = aim * ratio
	}
	return c
}

// floorComparisons compares anykind with the lowest cost of the same work that was found: net/http without anything around
// it, and a decoder that relies on valid JSON in memory.
func floorComparisons(pods []int, calls, events int) []comparison {
	var all []comparison
	add := func(name, what, figure string, count int, task, floor string) {
		all = append(all, comparison{name, what, floorAim, cost{run{"ours", task, count}, figure}, cost{run{"ours", floor, count}, figure}})
	}
	for _, count := range pods {
		list := func(name, what, figure, task, floor string) {
			add(fmt.Sprintf("%s/%d", name, count), what, figure, count, task, floor)
		}
		list("list-build-floor-cpu", "CPU of List, against net/http and building the same objects from valid JSON in memory", "cpu", "list", "floor-list")
		list("list-build-floor-alloc", "bytes allocated by the same", "alloc", "list", "floor-list")
		list("list-build-floor-whole-cpu", "CPU of ListPage, against the same with the one response", "cpu", "whole", "floor-whole")
		list("list-build-floor-whole-alloc", "bytes allocated by the same", "alloc", "whole", "floor-whole")
	}
	all = append(all, cacheFloorComparisons(pods)...)
	for _, verb := range []string{"get", "create", "update"} {
		const floor = ", against net/http with the same headers and anykind's encoder and decoder"
		add(verb+"-floor-latency", "median time of a call"+floor, verb+"-wall", calls, "calls", "floor-calls")
		add(verb+"-floor-alloc", "bytes allocated by a call"+floor, verb+"-alloc", calls, "calls", "floor-calls")
	}
	add("cache-event-floor-cpu", "CPU of a change in a cache of full objects with one consumer, against net/http, building each object and a map of them",
		"event-cpu", events, "cache-event", "floor-event")
	return all
}

// cacheFloorComparisons compares synced caches with maps of the same objects.
func cacheFloorComparisons(pods []int) []comparison {
	var all []comparison
	for _, count := range pods {
		for _, c := range []struct{ name, what, task, figure string }{
			{"cache-floor-heap", "live heap of a synced cache of full objects, against a map of the same objects whose equal maps, lists and strings are one", "cache", "held"},
			{"cache-floor-heap-lazy", "live heap of a synced cache of lazy objects, against a map of their JSON", "cache-lazy", "held"},
			{"cache-floor-cpu", "CPU until a cache of full objects is synced, against net/http and building a map of the same objects", "cache", "sync-cpu"},
		} {
			ours := cost{run{"ours", c.task, count}, c.figure}
			floor, aim, _ := floorOf(ours)
			all = append(all, comparison{fmt.Sprintf("%s/%d", c.name, count), c.what, aim, ours, floor})
		}
	}
	return all
}
