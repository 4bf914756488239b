//go:build unix

package main

import "fmt"

// floorAim is how far anykind may be above the lowest cost.
const floorAim = 1.15

// floorTasks has the task of the lowest cost for a task of anykind.
var floorTasks = map[string]string{"list": "floor-list", "whole": "floor-whole", "calls": "floor-calls", "cache-event": "floor-event"}

// withFloor returns the comparison with an aim that can be met: where the lowest cost is itself above the aim, that is floorAim
// times the lowest cost.
func (c comparison) withFloor(costOf func(cost) float64) comparison {
	task, ok := floorTasks[c.ours.task]
	if !ok || c.theirs.task == task {
		return c
	}
	floor := c.ours
	floor.task = task
	if ratio := costOf(floor) / costOf(c.theirs); ratio > c.aim {
		c.what += fmt.Sprintf("; the aim of %.2f is below the floor, %.2f", c.aim, ratio)
		c.aim = floorAim * ratio
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
	for _, verb := range []string{"get", "create", "update"} {
		const floor = ", against net/http with the same headers and anykind's encoder and decoder"
		add(verb+"-floor-latency", "median time of a call"+floor, verb+"-wall", calls, "calls", "floor-calls")
		add(verb+"-floor-alloc", "bytes allocated by a call"+floor, verb+"-alloc", calls, "calls", "floor-calls")
	}
	add("cache-event-floor-cpu", "CPU of a change in a cache of full objects with one consumer, against net/http, building each object and a map of them",
		"event-cpu", events, "cache-event", "floor-event")
	return all
}
