package main

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	charWidth  = 8.4
	lineHeight = 19
	margin     = 16
)

var escape = regexp.MustCompile(`\x1b\[(\d+)m`)

// plain returns the text without colours.
func plain(text string) string { return escape.ReplaceAllString(text, "") }

// classes maps the color codes of package print to CSS classes.
var classes = map[string]string{"1": "b", "31": "r", "32": "g", "33": "y"}

// svg returns an SVG of the text in a terminal.
func svg(text string) []byte {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	width := 0
	for _, line := range lines {
		width = max(width, utf8.RuneCountInString(plain(line)))
	}
	var out bytes.Buffer
	w := float64(width)*charWidth + 2*margin
	h := len(lines)*lineHeight + 2*margin
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d">`+"\n", w, h, w, h)
	out.WriteString("<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d4d4d4;white-space:pre}" +
		".b{font-weight:bold;fill:#fff}.r{fill:#f14c4c}.g{fill:#23d18b}.y{fill:#e5e510}</style>\n")
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" rx="8" fill="#1e1e1e"/>`+"\n")
	for i, line := range lines {
		if line == "" {
			continue
		}
		length := float64(utf8.RuneCountInString(plain(line))) * charWidth
		fmt.Fprintf(&out, `<text x="%d" y="%d" textLength="%.1f" xml:space="preserve">%s</text>`+"\n",
			margin, margin+(i+1)*lineHeight-5, length, spans(line))
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// spans converts the color codes of a line to tspan elements.
func spans(line string) string {
	var out strings.Builder
	isOpen := false
	end := 0
	for _, at := range escape.FindAllStringSubmatchIndex(line, -1) {
		out.WriteString(html.EscapeString(line[end:at[0]]))
		end = at[1]
		if isOpen {
			out.WriteString("</tspan>")
			isOpen = false
		}
		if class := classes[line[at[2]:at[3]]]; class != "" {
			fmt.Fprintf(&out, `<tspan class="%s">`, class)
			isOpen = true
		}
	}
	out.WriteString(html.EscapeString(line[end:]))
	if isOpen {
		out.WriteString("</tspan>")
	}
	return out.String()
}
