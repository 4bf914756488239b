// Package printable keeps text of servers, containers and web pages from controlling a terminal.
//
// Control characters except tab and line break, direction overrides and invalid UTF-8 become U+FFFD. Each character is replaced
// by a single U+FFFD, so columns stay aligned. A carriage return before a line break stays.
package printable

import (
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Text returns s with terminal control characters replaced.
func Text(s string) string {
	clean, rest := appendText(nil, []byte(s))
	for range rest {
		clean = utf8.AppendRune(clean, utf8.RuneError)
	}
	return string(clean)
}

// Line returns [Text] of s as a single line. Line breaks become spaces; line breaks at the end are removed.
func Line(s string) string {
	return Text(strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\r', '\v', '\f', '\u0085', '\u2028', '\u2029':
			return ' '
		}
		return r
	}, strings.ToValidUTF8(strings.TrimRight(s, "\r\n"), string(utf8.RuneError))))
}

// Lines returns [Text] of s with its line breaks. Lines after the first are indented: they cannot imitate a message. Consecutive
// empty lines become a single empty line.
func Lines(s string) string {
	var lines []string
	for i, line := range strings.Split(strings.TrimRight(s, "\r\n"), "\n") {
		line = Line(line)
		switch isEmpty := strings.TrimSpace(line) == ""; {
		case i == 0:
		case !isEmpty:
			line = "  " + line
		case lines[len(lines)-1] == "":
			continue
		default:
			line = ""
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// LineFor returns [Line] of s if w is a terminal, and s for files and pipes. A method Unwrap of w returns the writer below.
func LineFor(w io.Writer, s string) string {
	for {
		wrapper, ok := w.(interface{ Unwrap() io.Writer })
		if !ok {
			break
		}
		w = wrapper.Unwrap()
	}
	if IsTerminal(w) {
		return Line(s)
	}
	return s
}

// appendText appends Text of p to clean. rest is an incomplete character or a final carriage return, at most three bytes.
func appendText(clean, p []byte) (appended, rest []byte) {
	for len(p) > 0 {
		r, size := utf8.DecodeRune(p)
		switch {
		case r == '\r' && len(p) == 1, r == utf8.RuneError && !utf8.FullRune(p):
			return clean, p
		case r == '\r' && p[1] == '\n', !controls(r):
			clean = utf8.AppendRune(clean, r)
		default:
			clean = utf8.AppendRune(clean, utf8.RuneError)
		}
		p = p[size:]
	}
	return clean, nil
}

// controls reports whether a terminal obeys a character instead of showing it.
func controls(r rune) bool {
	const firstEmbedding, lastOverride, firstIsolate, lastIsolate = '\u202a', '\u202e', '\u2066', '\u2069'
	return unicode.IsControl(r) && r != '\n' && r != '\t' ||
		r >= firstEmbedding && r <= lastOverride || r >= firstIsolate && r <= lastIsolate
}

// Writer returns w, or a writer of [Text] to w if w is a terminal. An incomplete character or a carriage return at the end of a
// write is held until the next write or [Flush]. The writer is safe for concurrent use.
func Writer(w io.Writer) io.Writer {
	if _, isWriter := w.(*writer); isWriter || !IsTerminal(w) {
		return w
	}
	return &writer{out: w}
}

// Flush writes the held bytes of a [Writer], an incomplete character or a carriage return, as U+FFFD. It returns nil for a writer
// of a different type.
func Flush(w io.Writer) error {
	if wrapper, ok := w.(*writer); ok {
		return wrapper.flush()
	}
	return nil
}

// Unwrap returns the terminal below a [Writer], for text with control characters, or else w.
func Unwrap(w io.Writer) io.Writer {
	if wrapper, ok := w.(*writer); ok {
		return wrapper.out
	}
	return w
}

// IsTerminal reports whether a stream is a terminal, or a [Writer] to a terminal.
func IsTerminal(stream any) bool {
	if _, isWriter := stream.(*writer); isWriter {
		return true
	}
	file, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file descriptor is an int
}

type writer struct {
	out io.Writer

	mu           sync.Mutex
	text, buffer []byte // text begins with the rest of the previous write
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	clean, rest := appendText(w.buffer[:0], w.text)
	w.buffer = clean
	w.text = append(w.text[:0], rest...)
	if _, err := w.out.Write(clean); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *writer) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.text) == 0 {
		return nil
	}
	_, err := io.WriteString(w.out, Text(string(w.text)))
	w.text = w.text[:0]
	return err
}
