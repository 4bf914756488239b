package inventory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/inventory"
)

// BenchmarkView_Query queries 5,000 objects of 400 kinds. 50 objects are below owner-1-0: 7 children and 6 or 7 objects below each child.
func BenchmarkView_Query(b *testing.B) {
	const kinds = 400
	var resources strings.Builder
	for i := range kinds {
		fmt.Fprintf(&resources, "bench.example/v1 kind%ds kind%d Kind%d\n", i, i, i)
	}
	server := scripted.New(resources.String())
	count := 0
	objects := func(kind int) (all []string) {
		for i := range 12 {
			all = append(all, metadata(fmt.Sprintf("a/single-%d/single-%d-%d", i, kind, i), `"labels":{"app":"web"}`)+`,"spec":{"replicas":2}`)
		}
		switch {
		case kind == 1:
			all = append(all, metadata("a/owner/owner-1-0"))
		case kind%50 == 2 && kind < 350:
			all = append(all, metadata(fmt.Sprintf("a/child/child-%d", kind/50), owned("owner-1-0")))
		case kind%8 == 3 && count < 43:
			all = append(all, metadata("a/leaf/leaf-"+fmt.Sprint(count), owned(fmt.Sprintf("child-%d", count%7)))+`,"status":{"phase":"Failed"}`)
			count++
		}
		return all
	}
	for i := range kinds {
		server.Handle(fmt.Sprintf("WATCH /apis/bench.example/v1/kind%ds", i), stream("bench.example/v1", fmt.Sprintf("Kind%d", i), objects(i)...))
	}
	c := inventory.NewCache(connect(b, server), nil)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = c.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	if err := c.WaitForSync(ctx); err != nil {
		b.Fatal(err)
	}
	for name, bench := range map[string]struct {
		query *inventory.Query
		want  int
	}{
		"Subtree":     {&inventory.Query{Owner: "owner-1-0", Descendants: true}, 50},
		"Children":    {&inventory.Query{Owner: "owner-1-0"}, 7},
		"UID":         {&inventory.Query{UID: "leaf-7"}, 1},
		"FirstOfText": {&inventory.Query{Text: "failed", Limit: 1}, 1},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				page, err := c.Query(ctx, bench.query)
				if err != nil {
					b.Fatal(err)
				}
				if len(page.Entries) != bench.want {
					b.Fatalf("%d entries", len(page.Entries))
				}
			}
		})
	}
}
