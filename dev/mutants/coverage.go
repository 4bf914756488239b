package main

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// coverage maps the base name of a file to the blocks of its coverage profile. Blocks do not overlap.
type coverage map[string][]block

type block struct {
	startLine, startColumn, endLine, endColumn, statements, count int
}

// readCoverage parses the coverage profile of a package.
func readCoverage(profile string) (coverage, error) {
	blocks := coverage{}
	for line := range strings.Lines(profile) {
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		colon := strings.LastIndexByte(line, ':')
		var b block
		if colon < 0 {
			return nil, fmt.Errorf("coverage profile: unknown line %q", line)
		}
		if _, err := fmt.Sscanf(line[colon+1:], "%d.%d,%d.%d %d %d",
			&b.startLine, &b.startColumn, &b.endLine, &b.endColumn, &b.statements, &b.count); err != nil {
			return nil, fmt.Errorf("coverage profile: line %q: %w", line, err)
		}
		name := path.Base(line[:colon])
		blocks[name] = append(blocks[name], b)
	}
	return blocks, nil
}

// covers reports whether tests run the code of m. The expressions of a case belong to no block: the next block, the body of the
// case, counts.
func (c coverage) covers(m mutant) bool {
	var next *block
	for _, b := range c[filepath.Base(m.file)] {
		if isBefore(m.line, m.column, b.startLine, b.startColumn) {
			if next == nil || isBefore(b.startLine, b.startColumn, next.startLine, next.startColumn) {
				next = &b
			}
			continue
		}
		if isBefore(m.line, m.column, b.endLine, b.endColumn) {
			return b.count > 0
		}
	}
	return next != nil && next.count > 0
}

func isBefore(line, column, otherLine, otherColumn int) bool {
	return line < otherLine || line == otherLine && column < otherColumn
}
