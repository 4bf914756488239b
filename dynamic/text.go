package dynamic

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/anykind/anykind/internal/sanitize"
)

// Bounds of text from servers and objects in errors, in bytes but for maxListed.
const (
	maxMessage = 16 << 10 // a Status's message: some list every invalid field
	maxWord    = 1 << 10
	maxListed  = 20 // elements of a list
)

// printable returns text of a server or object as it may be shown in an error: one short line.
func printable(text string) string { return sanitize.Text(text, maxWord) }

// quotedText is printable in quotes.
func quotedText(text string) string {
	if len(text) > maxWord {
		text = sanitize.Text(text, maxWord)
	}
	return strconv.Quote(text)
}

// joined lists printable elements, and says how many more there are than it lists.
func joined(elements []string) string {
	if len(elements) <= maxListed {
		return strings.Join(elements, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(elements[:maxListed], ", "), len(elements)-maxListed)
}
