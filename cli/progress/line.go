package progress

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	eastasian "golang.org/x/text/width"

	"github.com/anykind/anykind/cli/internal/printable"
)

// singleLine returns a text without line breaks and control characters.
func singleLine(text string) string { return strings.TrimSpace(printable.Line(text)) }

// statusLine returns a text with the elapsed time, cut to a terminal's width.
func statusLine(text string, elapsed time.Duration, width int) string {
	suffix := ""
	if elapsed >= elapsedInterval {
		suffix = fmt.Sprintf(" (%v)", elapsed.Truncate(time.Second))
	}
	// The last column stays empty: some terminals wrap as soon as it is written.
	room := width - 1 - len(suffix)
	if room < len("…")+len(suffix) {
		return cut(text, width-1)
	}
	return cut(text, room) + suffix
}

// cut returns text in at most room columns. A cut text ends in an ellipsis.
func cut(text string, room int) string {
	if room <= 0 {
		return ""
	}
	used := 0
	end := 0 // text[:end] leaves a column for the ellipsis
	for i, r := range text {
		size := columnsOf(r)
		if used+size > room {
			return text[:end] + "…"
		}
		if used += size; used <= room-1 {
			end = i + len(string(r))
		}
	}
	return text
}

// columns returns the width of a text in terminal columns.
func columns(text string) int {
	sum := 0
	for _, r := range text {
		sum += columnsOf(r)
	}
	return sum
}

// columnsOf returns the width of a character in terminal columns.
func columnsOf(r rune) int {
	switch kind := eastasian.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case kind == eastasian.EastAsianWide || kind == eastasian.EastAsianFullwidth:
		return 2
	}
	return 1
}
