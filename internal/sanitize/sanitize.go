// Package sanitize makes text from containers, nodes, servers and other programs safe to put into an error: such text
// ends in terminals and logs, where escape sequences, line breaks and length do harm.
package sanitize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const ellipsis = "…"

// Text returns s as one line of printable text of at most limit bytes. ANSI color and cursor sequences are removed, white
// space of any kind becomes one space, other unprintable characters (controls, bidirectional overrides, invalid UTF-8)
// become U+FFFD, one for a run, and what exceeds limit becomes an ellipsis. It reads no more of s than it needs for that. A
// limit below 3, the length of the ellipsis, yields nothing.
func Text(s string, limit int) string {
	var text strings.Builder
	var last rune
	gap := false // white space awaits a character after it
	for s != "" && text.Len() <= limit {
		if n := sequence(s); n > 0 {
			s = s[n:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		s = s[size:]
		switch {
		case unicode.IsSpace(r):
			gap = text.Len() > 0
			continue
		case !unicode.IsPrint(r):
			r = utf8.RuneError
		}
		if r == utf8.RuneError && last == r && !gap {
			continue
		}
		if gap {
			text.WriteByte(' ')
			gap = false
		}
		text.WriteRune(r)
		last = r
	}
	return cut(text.String(), limit)
}

// cut shortens s, which is valid UTF-8, to limit bytes.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit - len(ellipsis)
	if end < 0 {
		return ""
	}
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return strings.TrimRight(s[:end], " ") + ellipsis
}

// sequence returns the length of the control sequence (ESC [ … letter) that s begins with, or 0.
func sequence(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x7e:
			return i // malformed: what follows is text
		}
	}
	return len(s)
}
