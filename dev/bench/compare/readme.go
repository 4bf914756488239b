//go:build unix

package main

import (
	"fmt"
	"os"
	"strings"
)

// The README has the figures between these lines.
const (
	readmeStart = "<!-- benchmarks: written by make bench -->\n"
	readmeEnd   = "<!-- benchmarks: end -->\n"
)

// readmeRows are the comparisons in the README: like with like, on both sides.
var readmeRows = []struct{ name, what string }{
	{"list-objects-paged-cpu", "CPU of a list of %d pods in pages, as maps: `List` and client-go's pager"},
	{"list-iterate-heap", "peak of the live heap meanwhile"},
	{"watch-decode", "CPU of a watch event"},
	{"cache-typed-heap-lazy", "live heap of a cache of %d pods, lazy objects, and of client-go's informer of typed objects over protobuf"},
	{"binary-size", "size of a program that lists any resource by its short name"},
}

// writeReadme replaces the figures of the README.
func writeReadme(path string, results []result, length int) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), readmeStart)
	_, after, ended := strings.Cut(rest, readmeEnd)
	if !found || !ended {
		return fmt.Errorf("write the figures of %s: a mark is missing (%q and %q)", path, readmeStart, readmeEnd)
	}
	var table strings.Builder
	table.WriteString("| | of client-go's |\n|---|---|\n")
	for _, row := range readmeRows {
		for _, r := range results {
			if r.nameAt(length) == row.name {
				fmt.Fprintf(&table, "| %s | %s |\n", strings.ReplaceAll(row.what, "%d", fmt.Sprint(length)), r.shown())
			}
		}
	}
	return os.WriteFile(path, []byte(before+readmeStart+table.String()+readmeEnd+after), 0o644) //nolint:gosec // everybody may read it
}
