//go:build unix

package main

import (
	"fmt"
	"strings"
	"time"
)

// protobufTask is the suffix of tasks of ours with protobuf in place of JSON.
const protobufTask = "-protobuf"

// protobufComparisons compares responses as protobuf with responses as JSON, and with client-go's clients: CPU of the client and of
// kube-apiserver together, CPU of the client alone, the live heap of caches, and the memory of kube-apiserver.
func protobufComparisons(count, events, calls int) []comparison {
	var all []comparison
	add := func(name, what, figure string, aim float64, count int, task string, theirs run) {
		all = append(all, comparison{
			name: fmt.Sprintf("protobuf-%s/%d", name, count), what: what, aim: aim,
			ours: cost{run{"ours", task + protobufTask, count}, figure}, theirs: cost{theirs, figure},
		})
	}
	const both = "CPU of client and kube-apiserver as protobuf, against "
	for _, form := range []struct {
		task, what string
		aim        float64
		heapAim    float64 // 0 for tasks without a cache
	}{
		{"list", "List of full objects", 0.65, 0},
		{"whole", "ListPage of full objects", 0.65, 0},
		{"lazy", "List of lazy objects with two fields read", 0.6, 0},
		{"cache", "a cache of full objects", 0.9, 1},
		{"cache-lazy", "a cache of lazy objects", 0.6, 0.75},
		{"cache-packed", "a cache of packed objects", 1, 1},
		{"cache-metadata-lazy", "a cache of lazy metadata", 0.8, 0.75},
	} {
		inJSON := run{"ours", form.task, count}
		add(form.task+"-both-cpu", both+"JSON: "+form.what, "both-cpu", form.aim, count, form.task, inJSON)
		add(form.task+"-cpu", "CPU of the client alone as protobuf, against JSON: "+form.what, "cpu", 1, count, form.task, inJSON)
		if form.heapAim > 0 {
			add(form.task+"-heap", "live heap as protobuf, against JSON: "+form.what, "held", form.heapAim, count, form.task, inJSON)
		}
		add(form.task+"-server-alloc", "bytes that kube-apiserver allocates for protobuf, against JSON: "+form.what, "server-alloc", 1, count, form.task, inJSON)
		add(form.task+"-server-peak", "peak RSS of kube-apiserver meanwhile", "server-peak", 1, count, form.task, inJSON)
	}
	for _, peer := range []struct{ suffix, task, what string }{
		{"dynamic", "pager", "client-go's pager of unstructured objects as JSON"},
		{"typed", "pager-typed", "client-go's pager of typed objects as protobuf"},
	} {
		for _, task := range []string{"list", "lazy"} {
			add(task+"-"+peer.suffix+"-both-cpu", both+peer.what+": "+task, "both-cpu", 1, count, task, run{"theirs", peer.task, count})
		}
	}
	for _, call := range []struct{ task, what string }{{"gets", "Get of %d pods"}, {"applies", "Apply of %d pods"}} {
		what := fmt.Sprintf(call.what, calls)
		add(call.task+"-both-cpu", both+"JSON: "+what, "both-cpu", 1, calls, call.task, run{"ours", call.task, calls})
		add(call.task+"-dynamic-both-cpu", both+"client-go's dynamic client: the same", "both-cpu", 1, calls, call.task, run{"theirs", call.task, calls})
		add(call.task+"-typed-both-cpu", both+"client-go's typed client as protobuf: the same", "both-cpu", 1, calls, call.task,
			run{"theirs", call.task + "-typed", calls})
	}
	add("cache-event-cpu", "CPU of a change in a cache of full objects with one consumer as protobuf, against JSON", "event-cpu", 1, events,
		"cache-event", run{"ours", "cache-event", events})
	for _, watches := range []int{10, 100} {
		task := fmt.Sprint("watch-", watches)
		changes := max(events*10/watches, 1)
		what := fmt.Sprintf("%d watches receive %d changes, one each %s", watches, changes, livePace(task))
		add(task+"-both-cpu", both+"JSON: "+what, "both-cpu", 0.7, changes, task, run{"ours", task, changes})
		add(task+"-dynamic-both-cpu", both+"client-go's dynamic client: the same", "both-cpu", 1, changes, task, run{"theirs", task, changes})
		add(task+"-typed-both-cpu", both+"client-go's typed client as protobuf: the same", "both-cpu", 1, changes, task,
			run{"theirs", fmt.Sprint("watch-typed-", watches), changes})
	}
	return all
}

// livePace is the interval between changes for the watches of a task: a hundred watches receive no more events a second than ten do,
// since the server ends watches that lag.
func livePace(task string) time.Duration {
	if strings.Contains(task, "-100") {
		return 10 * pace
	}
	return pace
}
