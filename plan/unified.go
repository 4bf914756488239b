package plan

import (
	"fmt"
	"strings"
)

// contextLines is the number of equal lines around a change.
const contextLines = 3

// edit is a line of a difference: ' ' for an equal, '-' for a removed and '+' for an added line.
type edit struct {
	kind byte
	line string
}

// unified returns the difference of two texts in the unified format, without the names of files. It is empty for equal texts.
func unified(before, after string) string {
	edits := difference(lines(before), lines(after))
	var text strings.Builder
	oldLine := 1
	newLine := 1
	for i := 0; i < len(edits); {
		if edits[i].kind == ' ' {
			oldLine++
			newLine++
			i++
			continue
		}
		start := max(0, i-contextLines)
		end := hunkEnd(edits, i)
		writeHunk(&text, edits[start:end], oldLine-(i-start), newLine-(i-start))
		for ; i < end; i++ {
			if edits[i].kind != '+' {
				oldLine++
			}
			if edits[i].kind != '-' {
				newLine++
			}
		}
	}
	return text.String()
}

// hunkEnd returns the end of the hunk with the change at i: changes with at most twice contextLines between them are one hunk.
func hunkEnd(edits []edit, i int) int {
	last := i
	for j := i; j < len(edits) && j-last <= 2*contextLines+1; j++ {
		if edits[j].kind != ' ' {
			last = j
		}
	}
	return min(len(edits), last+1+contextLines)
}

func writeHunk(text *strings.Builder, edits []edit, oldLine, newLine int) {
	oldCount := 0
	newCount := 0
	for _, e := range edits {
		if e.kind != '+' {
			oldCount++
		}
		if e.kind != '-' {
			newCount++
		}
	}
	if oldCount == 0 {
		oldLine--
	}
	if newCount == 0 {
		newLine--
	}
	fmt.Fprintf(text, "@@ -%d,%d +%d,%d @@\n", oldLine, oldCount, newLine, newCount)
	for _, e := range edits {
		fmt.Fprintf(text, "%c%s\n", e.kind, e.line)
	}
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// maxCells limits the table of difference. Larger differences remove all old lines and add all new lines.
const maxCells = 4 << 20

// difference returns the edits from one list of lines to the other, by their longest common subsequence. Equal lines at both ends are
// not part of its table.
func difference(before, after []string) (edits []edit) {
	prefix := 0
	for prefix < min(len(before), len(after)) && before[prefix] == after[prefix] {
		prefix++
	}
	suffix := 0
	for suffix < min(len(before), len(after))-prefix && before[len(before)-1-suffix] == after[len(after)-1-suffix] {
		suffix++
	}
	for _, line := range before[:prefix] {
		edits = append(edits, edit{' ', line})
	}
	edits = append(edits, middle(before[prefix:len(before)-suffix], after[prefix:len(after)-suffix])...)
	for _, line := range before[len(before)-suffix:] {
		edits = append(edits, edit{' ', line})
	}
	return edits
}

func middle(before, after []string) (edits []edit) {
	width := len(after) + 1
	var lengths []int32 // of the longest common subsequence from (i, j) on
	if (len(before)+1)*width <= maxCells {
		lengths = make([]int32, (len(before)+1)*width)
		for i := len(before) - 1; i >= 0; i-- {
			for j := len(after) - 1; j >= 0; j-- {
				if before[i] == after[j] {
					lengths[i*width+j] = lengths[(i+1)*width+j+1] + 1
				} else {
					lengths[i*width+j] = max(lengths[(i+1)*width+j], lengths[i*width+j+1])
				}
			}
		}
	}
	i := 0
	j := 0
	for i < len(before) || j < len(after) {
		switch {
		case lengths != nil && i < len(before) && j < len(after) && before[i] == after[j]:
			edits = append(edits, edit{' ', before[i]})
			i++
			j++
		case i < len(before) && (lengths == nil || j == len(after) || lengths[(i+1)*width+j] >= lengths[i*width+j+1]):
			edits = append(edits, edit{'-', before[i]})
			i++
		default:
			edits = append(edits, edit{'+', after[j]})
			j++
		}
	}
	return edits
}
