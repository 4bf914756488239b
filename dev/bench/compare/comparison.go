//go:build unix

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// run is a task of a side, in a process of its own.
type run struct {
	side  string // "ours", "theirs", controllerRuntime or flux
	task  string
	count int // number of expected objects, events or calls
}

// cost is a figure of a run.
type cost struct {
	run
	figure string
}

// comparison is a line of the result: the ratio ours/theirs.
type comparison struct {
	name, what   string
	aim          float64 // maximum ratio
	ours, theirs cost
}

// nameAt returns the name of the comparison without the length of its list, or "" for a different length.
func (c comparison) nameAt(length int) string {
	name, of, found := strings.Cut(c.name, "/")
	if found && of != strconv.Itoa(length) {
		return ""
	}
	return name
}

// result has the medians of both sides.
type result struct {
	comparison
	oursCost, theirsCost float64
}

func (r result) ratio() float64 { return r.oursCost / r.theirsCost }

// shown returns the result for the page: the ratio, or for changes at a given pace both sides' rates of received changes.
func (r result) shown() string {
	if r.ours.figure == "event-wall" {
		return fmt.Sprintf("%.0f/s and %.0f/s", float64(r.ours.count)/r.oursCost, float64(r.theirs.count)/r.theirsCost)
	}
	return r.shownRatio()
}

func (r result) shownRatio() string {
	if r.ratio() < 0.1 {
		return fmt.Sprintf("%.3f", r.ratio())
	}
	return fmt.Sprintf("%.2f", r.ratio())
}

func (r result) missed() bool { return r.ratio() > r.aim }

func (r result) String() string {
	show := formatOf(r.ours.figure)
	return fmt.Sprintf("bench %s ratio=%.3f ours=%s theirs=%s", r.name, r.ratio(), show(r.oursCost), show(r.theirsCost))
}

// formatOf returns the format function of a figure.
func formatOf(figure string) func(float64) string {
	switch {
	case strings.HasPrefix(figure, "lookup"), figure == "event-cpu":
		return func(seconds float64) string { return fmt.Sprintf("%.3fµs", seconds*1e6) }
	case strings.HasSuffix(figure, "wall"), strings.HasSuffix(figure, "cpu"), strings.HasPrefix(figure, "event-delay"):
		return func(seconds float64) string { return fmt.Sprintf("%.3fms", seconds*1e3) }
	case strings.HasSuffix(figure, "alloc"), strings.HasSuffix(figure, "peak"), figure == "heap", figure == "held", figure == "size", strings.HasSuffix(figure, "rss"):
		return func(bytes float64) string { return fmt.Sprintf("%.1fkB", bytes/1e3) }
	default:
		return func(count float64) string { return fmt.Sprintf("%.0f", count) }
	}
}

// all returns all comparisons, in the order of the page.
func (o *options) all() []comparison {
	var all []comparison
	for _, count := range o.pods {
		all = append(all, listComparisons(count)...)
	}
	all = append(all, heapComparisons(o.pods)...)
	all = append(all, comparison{
		name: "watch-decode", what: "CPU of an event, replayed from a resourceVersion", aim: 0.30,
		ours: cost{run{"ours", "watch", o.events}, "cpu"}, theirs: cost{run{"theirs", "watch", o.events}, "cpu"},
	})
	all = append(all, callComparisons(o.calls)...)
	all = append(all, floorComparisons(o.pods, o.calls, o.events)...)
	all = append(all, cacheComparisons(o.pods, o.events)...)
	all = append(all, compressionComparisons(slices.Min(o.pods))...)
	all = append(all, controllerRuntimeComparisons(o.pods)...)
	all = append(all, protobufComparisons(slices.Max(o.pods), o.events, 3*o.calls)...)
	all = append(all, minuteComparisons(slices.Max(o.pods), o.changes)...)
	all = append(all, churnComparisons(slices.Min(o.pods), o.changes)...)
	for _, count := range o.pods {
		all = append(all, customComparisons(count)...)
	}
	all = append(all, mixedComparisons(slices.Min(o.pods))...)
	all = append(all, applySetComparisons(o.pods)...)
	all = append(all, programComparisons()...)
	all = append(all, cliComparisons(o.pods, o.definitions)...)
	all = append(all, explainComparisons(o.kinds)...)
	return all
}

// chosen returns the comparisons matched by the options.
func (o *options) chosen() []comparison {
	return slices.DeleteFunc(o.all(), func(c comparison) bool { return !o.matches(c.name) })
}

// matches reports whether a name has one of the prefixes.
func (o *options) matches(name string) bool {
	return len(o.match) == 0 || slices.ContainsFunc(o.match, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// allGroups returns all groups of the page.
func (o *options) allGroups() []group {
	return groupRuns(append(runsOf(o.all()), growthRuns(o.growth)...))
}

// chosenGroups returns the groups to measure. For the page a group is measured whole, even if only part of it is chosen.
func (o *options) chosenGroups() []group {
	runs := runsOf(o.chosen())
	if o.docs == "" {
		return groupRuns(runs)
	}
	if o.matches("growth") {
		runs = append(runs, growthRuns(o.growth)...)
	}
	return slices.DeleteFunc(o.allGroups(), func(g group) bool {
		return !slices.ContainsFunc(g.runs, func(r run) bool { return slices.Contains(runs, r) })
	})
}

// resultsOf returns the comparisons with the figures of both sides.
func (o *options) resultsOf(comparisons []comparison, kept *results) []result {
	var all []result
	for _, c := range comparisons {
		all = append(all, result{comparison: c.withFloor(kept.of), oursCost: kept.of(c.ours), theirsCost: kept.of(c.theirs)})
	}
	return all
}

// listComparisons compares lists of the same length, by each call of both sides.
func listComparisons(count int) []comparison {
	var all []comparison
	add := func(name, what, figure string, aim float64, ours, theirs run) {
		all = append(all, comparison{fmt.Sprintf("%s/%d", name, count), what, aim, cost{ours, figure}, cost{theirs, figure}})
	}
	ours := func(task string) run { return run{"ours", task, count} }
	theirs := func(task string) run { return run{"theirs", task, count} }
	for _, form := range []struct {
		name, what   string
		ours, theirs run
	}{
		{"list-objects", "each side's usual call, List", ours("list"), theirs("list")},
		{"list-objects-whole", "one request, all objects held: ListPage and List", ours("whole"), theirs("list")},
		{"list-objects-paged", "pages of 500: List and the pager", ours("list"), theirs("pager")},
	} {
		add(form.name+"-cpu", "CPU, "+form.what, "cpu", 0.22, form.ours, form.theirs)
		add(form.name+"-alloc", "bytes allocated, "+form.what, "alloc", 0.40, form.ours, form.theirs)
		add(form.name+"-wall", "time, "+form.what, "wall", 0.35, form.ours, form.theirs)
	}
	add("list-floor", "time of List, against reading and discarding the same pages", "wall", 1.4, ours("list"), ours("drain"))
	add("list-floor-whole", "time of ListPage, against reading and discarding the same response", "wall", 1.4, ours("whole"), ours("drain-whole"))
	const lazy = "names and phases: lazy objects against List and NestedString"
	add("list-lazy-cpu", "CPU, "+lazy, "cpu", 0.10, ours("lazy"), theirs("lazy"))
	add("list-lazy-alloc", "bytes allocated, "+lazy, "alloc", 0.10, ours("lazy"), theirs("lazy"))
	return all
}

// heapComparisons compares the live heap while a list is iterated, and its growth with the list.
func heapComparisons(pods []int) []comparison {
	var all []comparison
	for _, count := range pods {
		all = append(all, comparison{
			fmt.Sprintf("list-iterate-heap/%d", count), "peak of the live heap while pages of 500 are iterated: List and the pager", 0.05,
			cost{run{"ours", "iterate", count}, "heap"}, cost{run{"theirs", "iterate", count}, "heap"},
		})
	}
	short := slices.Min(pods)
	long := slices.Max(pods)
	if short == long {
		return all
	}
	return append(all, comparison{
		"list-iterate-heap-growth", fmt.Sprintf("the same of ours, with a list of %d against one of %d", long, short), 1.2,
		cost{run{"ours", "iterate", long}, "heap"}, cost{run{"ours", "iterate", short}, "heap"},
	})
}

// callComparisons compares single calls.
func callComparisons(count int) []comparison {
	var all []comparison
	ours := run{"ours", "calls", count}
	theirs := run{"theirs", "calls", count}
	for _, verb := range []string{"get", "create", "update"} {
		for _, figure := range []struct {
			name, figure, what string
			aim                float64
		}{
			{"latency", "wall", "median time of a call", 1},
			{"alloc", "alloc", "bytes allocated by a call", 0.5},
			{"allocs", "allocs", "allocations of a call", 0.5},
		} {
			all = append(all, comparison{verb + "-" + figure.name, figure.what, figure.aim,
				cost{ours, verb + "-" + figure.figure}, cost{theirs, verb + "-" + figure.figure}})
		}
	}
	return all
}

// cacheComparisons compares a cache with an informer of the dynamic client.
func cacheComparisons(pods []int, events int) []comparison {
	var all []comparison
	add := func(name, what, figure string, aim float64, ours string, theirs string, count int) {
		all = append(all, comparison{name, what, aim, cost{run{"ours", ours, count}, figure}, cost{run{"theirs", theirs, count}, figure}})
	}
	for _, count := range pods {
		of := func(name, what, figure string, aim float64, ours string) {
			add(fmt.Sprintf("%s/%d", name, count), what, figure, aim, ours, "cache", count)
		}
		of("cache-sync-wall", "time until a cache of full objects is synced", "sync-wall", 0.35, "cache")
		of("cache-sync-cpu", "CPU until then", "sync-cpu", 0.35, "cache")
		of("cache-heap", "live heap of a synced cache of full objects", "held", 0.65, "cache")
		of("cache-heap-lazy", "the same, of lazy objects", "held", 0.20, "cache-lazy")
		typed := func(name, what, figure string, aim float64, ours string) {
			add(fmt.Sprintf("%s/%d", name, count), what+", against an informer of typed objects over protobuf", figure, aim, ours, "cache-typed", count)
		}
		typed("cache-typed-heap", "live heap of a synced cache of full objects", "held", 0.9, "cache")
		typed("cache-typed-heap-lazy", "the same, of lazy objects", "held", 0.5, "cache-lazy")
		typed("cache-typed-heap-packed", "the same, of packed objects", "held", 0.15, "cache-packed")
		typed("cache-typed-peak-packed", "heap obtained from the system until a cache of packed objects is synced", "sync-peak", 0.4, "cache-packed")
		typed("cache-typed-rss-packed", "peak RSS of the process until then", "sync-rss", 0.4, "cache-packed")
		typed("cache-typed-cpu-packed", "CPU until then", "sync-cpu", 1.5, "cache-packed")
		typed("cache-typed-cpu-lazy", "CPU until a cache of lazy objects is synced", "sync-cpu", 1, "cache-lazy")
		typed("cache-typed-cpu", "CPU until a cache of full objects is synced", "sync-cpu", 1, "cache")
		same := func(name, what, figure string, aim float64, task string) {
			add(fmt.Sprintf("%s/%d", name, count), what, figure, aim, task, task, count)
		}
		same("cache-stripped-heap", "live heap without managedFields, by a Transform on both sides: full objects, against typed objects over protobuf", "held", 0.9, "cache-stripped")
		stripped := func(name, what, figure string, aim float64) {
			add(fmt.Sprintf("%s/%d", name, count), what, figure, aim, "cache-stripped-lazy", "cache-stripped", count)
		}
		stripped("cache-stripped-heap-lazy", "the same, of lazy objects", "held", 0.5)
		stripped("cache-stripped-cpu-lazy", "CPU until it is synced", "sync-cpu", 1)
		same("cache-metadata-heap", "live heap of metadata, against the metadata informer over protobuf", "held", 0.9, "cache-metadata")
		same("cache-metadata-cpu", "CPU until it is synced", "sync-cpu", 1, "cache-metadata")
		add(fmt.Sprintf("cache-metadata-heap-lazy/%d", count), "live heap of metadata that stays JSON, against the metadata informer over protobuf", "held", 0.9, "cache-metadata-lazy", "cache-metadata", count)
		add(fmt.Sprintf("cache-metadata-cpu-lazy/%d", count), "CPU until it is synced", "sync-cpu", 1, "cache-metadata-lazy", "cache-metadata", count)
		of("cache-peak", "heap obtained from the system until a cache of lazy objects is synced", "sync-peak", 0.30, "cache-lazy")
	}
	typedEvent := func(name, what string, aim float64, ours string) {
		add(name, "CPU of a change in a cache of "+what+" objects with one consumer, against an informer of typed objects over protobuf", "event-cpu", aim, ours, "cache-event-typed", events)
	}
	typedEvent("cache-typed-event-cpu", "full", 1, "cache-event")
	typedEvent("cache-typed-event-cpu-lazy", "lazy", 1, "cache-event-lazy")
	all = append(all, comparison{
		"cache-packed-event-cpu", "CPU of a change in a cache of packed objects, against anykind's own of lazy ones", 1.5,
		cost{run{"ours", "cache-event-packed", events}, "event-cpu"}, cost{run{"ours", "cache-event-lazy", events}, "event-cpu"},
	})
	const event = "from writing a change until a consumer of the cache receives it"
	add("cache-event-cpu", "CPU of a change in a cache of full objects with one consumer", "event-cpu", 0.30, "cache-event", "cache-event", events)
	add("cache-event-delay", "median time "+event, "event-delay", 1, "cache-event", "cache-event", events)
	add("cache-event-delay-99", "99th percentile of the time "+event, "event-delay-99", 1, "cache-event", "cache-event", events)
	longest := slices.Max(pods)
	add("cache-index", fmt.Sprintf("time to find the pods of a node by an index, among %d", longest), "lookup-wall", 1, "cache-index", "cache-index", longest)
	return all
}

// minuteComparisons compares the cost of changes in caches of many objects. The delays of an overloaded side grow with the length
// of the run. Therefore rates are compared, not delays.
func minuteComparisons(objects, changes int) []comparison {
	var all []comparison
	add := func(name, what, figure string, aim float64) {
		all = append(all, comparison{name, fmt.Sprintf("%s, of %d changes among %d objects", what, changes, objects), aim,
			cost{run{"ours", "cache-minute", changes}, figure}, cost{run{"theirs", "cache-minute", changes}, figure}})
	}
	add("cache-minute-cpu", "CPU of one", "event-cpu", 0.30)
	add("cache-minute-rate", "received at, by ours and theirs", "event-wall", 1.1)
	return all
}

// programComparisons compares the smallest programs for listing a resource by its short name.
func programComparisons() []comparison {
	of := func(name, what, figure, task string, aim float64) comparison {
		return comparison{name, what, aim, cost{run{"ours", task, 1}, figure}, cost{run{"theirs", task, 1}, figure}}
	}
	return []comparison{
		of("binary-size", "kubeconfig, discovery, mapping and list in a program, stripped, without cgo", "size", "program", 0.45),
		of("packages", "packages in it outside of the standard library", "packages", "program", 0.45),
		of("cold-cli", "a whole process: resolve deploy without a cache, get a Deployment", "wall", "first", 0.6),
		of("cold-cli-cpu", "CPU of the same", "cpu", "first", 0.6),
	}
}

// runsOf lists the distinct runs of the comparisons, in order.
func runsOf(all []comparison) []run {
	var runs []run
	for _, c := range all {
		for _, needed := range []run{c.ours.run, c.theirs.run} {
			if !slices.Contains(runs, needed) {
				runs = append(runs, needed)
			}
		}
	}
	return runs
}
