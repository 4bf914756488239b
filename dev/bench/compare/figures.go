//go:build unix

package main

import (
	"bytes"
	"fmt"
	"html"
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

const (
	rowHeight = 22
	nameWidth = 230
	barWidth  = 480 // of a ratio of plotEnd
	plotEnd   = 1.6 // longer bars are cut there
)

// ratioPlot draws each ratio as a bar, with a mark at its aim and a line at 1, client-go's cost.
func ratioPlot(results []result) []byte {
	var b bytes.Buffer
	height := rowHeight*len(results) + 40
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`+"\n",
		nameWidth+barWidth+60, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n")
	for _, mark := range []float64{0, 0.5, 1, 1.5} {
		colour := "#dddddd"
		if mark == 1 {
			colour = "#555555"
		}
		fmt.Fprintf(&b, `<line x1="%.0[1]f" x2="%.0[1]f" y1="20" y2="%[2]d" stroke="%[3]s"/><text x="%.0[1]f" y="14" text-anchor="middle">%[4]g</text>`+"\n",
			at(mark), height-15, colour, mark)
	}
	for i, r := range results {
		top := 24 + rowHeight*i
		colour := "#3572b0"
		if r.missed() {
			colour = "#c9622f"
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, nameWidth-8, top+13, html.EscapeString(r.name))
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="14" fill="%s"/>`, nameWidth, top+2, at(r.ratio())-nameWidth, colour)
		fmt.Fprintf(&b, `<line x1="%.1[1]f" x2="%.1[1]f" y1="%[2]d" y2="%[3]d" stroke="#000000" stroke-width="2"/>`, at(r.aim), top, top+18)
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", nameWidth+barWidth+8, top+13, r.shownRatio())
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d">bar: anykind's cost divided by client-go's; mark: the aim</text>`+"\n</svg>\n", nameWidth, height-2)
	return b.Bytes()
}

// at returns the x coordinate of a ratio.
func at(ratio float64) float64 { return nameWidth + min(ratio, plotEnd)*barWidth/plotEnd }
