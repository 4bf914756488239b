//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/dev/bench/internal/soak"
)

// result has the measurements of a soak.
type result struct {
	opts    *options
	began   time.Time
	samples map[string][]soak.Sample // by side
	left    []soak.Sample            // ours and theirs, after the stop
	changes int64
	faults  map[string]int
}

// table returns the result as Markdown.
func (r *result) table() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s of %d changes a second (%d accepted) to %d objects in 35 caches, on %s with %d cores, seed %d.\n\n",
		r.opts.length.Round(time.Second), r.opts.rate, r.changes, r.opts.objects, r.began.Format(time.DateOnly), runtime.NumCPU(), r.opts.seed)
	r.writeFaults(&out)
	out.WriteString("\n| | anykind's caches | client-go's dynamic informers | ratio |\n|---|---|---|---|\n")
	ours := r.samples["ours"]
	theirs := r.samples["theirs"]
	row := func(name string, of func(samples []soak.Sample) float64, format string) {
		a := of(ours)
		b := of(theirs)
		fmt.Fprintf(&out, "| %s | "+format+" | "+format+" | %.2f |\n", name, a, b, a/b)
	}
	last := func(samples []soak.Sample) soak.Sample { return samples[len(samples)-1] }
	const mega = 1e6
	row("CPU, seconds", func(s []soak.Sample) float64 { return last(s).CPU - s[0].CPU }, "%.1f")
	row("RSS at the start, MB", func(s []soak.Sample) float64 { return float64(s[0].RSS) / mega }, "%.0f")
	row("RSS at the end, MB", func(s []soak.Sample) float64 { return float64(last(s).RSS) / mega }, "%.0f")
	row("largest RSS, MB", func(s []soak.Sample) float64 { return most(s, func(s soak.Sample) uint64 { return s.RSS }) / mega }, "%.0f")
	row("heap in use at the end, MB", func(s []soak.Sample) float64 { return float64(last(s).HeapInuse) / mega }, "%.0f")
	row("largest heap in use, MB", func(s []soak.Sample) float64 {
		return most(s, func(s soak.Sample) uint64 { return s.HeapInuse }) / mega
	}, "%.0f")
	row("changes delivered", func(s []soak.Sample) float64 { return float64(last(s).Events - s[0].Events) }, "%.0f")
	out.WriteString("\nA consumer of a cache gets the latest state of each object when it is ready for it; an informer's handlers get each change,\n" +
		"and after a relist each object again.\n")
	fmt.Fprintf(&out, "\nBoth equalled the server at the end. After the caches stopped, anykind had %s, client-go %s.\n", remains(r.left[0]), remains(r.left[1]))
	return out.String()
}

// writeFaults writes the table of the faults.
func (r *result) writeFaults(out *strings.Builder) {
	out.WriteString("| fault | times |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(r.faults)) {
		fmt.Fprintf(out, "| %s | %d |\n", name, r.faults[name])
	}
}

func remains(s soak.Sample) string {
	return fmt.Sprintf("%d goroutines, %d descriptors and %.1f MB of heap", s.Goroutines, s.Descriptors, float64(s.HeapLive)/1e6)
}

func most(samples []soak.Sample, of func(soak.Sample) uint64) float64 {
	var largest uint64
	for _, s := range samples {
		largest = max(largest, of(s))
	}
	return float64(largest)
}

const (
	beginMark = "<!-- soak: begin -->\n"
	endMark   = "<!-- soak: end -->\n"
)

// write replaces the text between the two marks of a page.
func write(path, table string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the result: %w (the page must exist and have the lines %q and %q)", err, beginMark, endMark)
	}
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(text, []byte(beginMark))
	_, after, closed := bytes.Cut(rest, []byte(endMark))
	if !found || !closed {
		return fmt.Errorf("write the result into %s: it lacks the line %q or %q", path, beginMark, endMark)
	}
	return os.WriteFile(path, slices.Concat(before, []byte(beginMark), []byte(table), []byte(endMark), after), 0o644)
}
