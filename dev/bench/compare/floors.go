//go:build unix

package main

import (
	"fmt"
)

const (
	// floorAim is the maximum ratio of anykind's cost to the lowest cost.
	floorAim = 1.15
	// floorHeapAim is the same ratio for the live heap of a cache.
	floorHeapAim = 1.1
)

// floorTasks maps tasks of anykind, or a single figure of a task, to the task with the lowest cost.
var floorTasks = map[string]string{
	"list": "floor-list", "whole": "floor-whole", "calls": "floor-calls", "cache-event": "floor-event",
	"cache/held": "floor-cache-shared", "cache/sync-cpu": "floor-cache", "cache-lazy/held": "floor-cache-lazy", "cache-lazy/sync-cpu": "floor-cache-lazy", "cache-stripped/held": "floor-stripped",
	"cache-metadata/held": "floor-metadata-shared", "cache-metadata/sync-cpu": "floor-metadata", "cache-metadata-lazy/held": "floor-metadata-lazy",
	"cache-metadata-lazy/sync-cpu": "floor-metadata-lazy",
}

// floorOf returns the lowest cost of the same work, and the maximum ratio to it.
func floorOf(c cost) (floor cost, aim float64, found bool) {
	floor = c
	aim = floorAim
	if c.figure == "held" {
		aim = floorHeapAim
	}
	if floor.task, found = floorTasks[c.task+"/"+c.figure]; !found {
		floor.task, found = floorTasks[c.task]
	}
	return floor, aim, found
}

// withFloor returns the comparison with an attainable aim: if the lowest cost is above the aim, the new aim is ratio(floor) *
// floorOf's aim.
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

// floorComparisons compares anykind with the lowest known cost of the same work: bare net/http, and a decoder for JSON known to
// be valid and in memory.
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
	add := func(count int, name, what, task, figure string) {
		ours := cost{run{"ours", task, count}, figure}
		floor, aim, _ := floorOf(ours)
		all = append(all, comparison{fmt.Sprintf("%s/%d", name, count), what, aim, ours, floor})
	}
	const shared = ", against a map of the same objects whose equal maps, lists and strings are one"
	for _, count := range pods {
		add(count, "cache-floor-heap", "live heap of a synced cache of full objects"+shared, "cache", "held")
		add(count, "cache-floor-heap-lazy", "live heap of a synced cache of lazy objects, against a map of their JSON", "cache-lazy", "held")
		add(count, "cache-floor-cpu", "CPU until a cache of full objects is synced, against net/http and building a map of the same objects", "cache", "sync-cpu")
		add(count, "cache-floor-cpu-lazy", "CPU until a cache of lazy objects is synced, against net/http and a map of their JSON", "cache-lazy", "sync-cpu")
		add(count, "cache-floor-heap-stripped", "live heap without managedFields, by a Transform"+shared, "cache-stripped", "held")
		add(count, "cache-floor-heap-metadata", "live heap of metadata"+shared, "cache-metadata", "held")
		add(count, "cache-floor-heap-metadata-lazy", "live heap of metadata that stays JSON, against a map of the JSON", "cache-metadata-lazy", "held")
		add(count, "cache-floor-cpu-metadata", "CPU until metadata is synced, against net/http and building a map of the same objects", "cache-metadata", "sync-cpu")
		add(count, "cache-floor-cpu-metadata-lazy", "CPU until metadata that stays JSON is synced, against net/http and a map of the JSON", "cache-metadata-lazy", "sync-cpu")
	}
	return all
}
