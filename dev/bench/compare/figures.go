//go:build unix

package main

import (
	"bytes"
	"fmt"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// documentFigure is a figure of a document and the name of its comparison.
var documentFigure = regexp.MustCompile(`<!-- bench (\S+) -->([0-9.]*[0-9])`)

// documents returns README.md and the pages of docs.
func documents(docs string) ([]string, error) {
	paths := []string{filepath.Join(docs, "..", "README.md")}
	err := filepath.WalkDir(docs, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	})
	return paths, err
}

// writeFigures replaces the figures of documents. Figures of comparisons without a result stay.
func writeFigures(paths []string, results []result) error {
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		written := documentFigure.ReplaceAllStringFunc(string(text), func(old string) string {
			name := documentFigure.FindStringSubmatch(old)[1]
			for _, r := range results {
				if r.name == name {
					return "<!-- bench " + name + " -->" + r.shown()
				}
			}
			return old
		})
		if err := os.WriteFile(path, []byte(written), 0o644); err != nil { //nolint:gosec // everybody may read it
			return err
		}
	}
	return nil
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
