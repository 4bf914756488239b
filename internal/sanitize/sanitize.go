// Package sanitize makes untrusted text safe for errors. Text of containers, nodes, servers and proxies ends in terminals and
// logs: escape sequences, line breaks and length do harm there.
package sanitize

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const ellipsis = "…"

// Text returns s as a line of printable text of at most limit bytes. ANSI color and cursor sequences are removed, white space of
// any kind becomes a single space, a run of unprintable characters (controls, bidirectional overrides, invalid UTF-8) becomes
// U+FFFD, and text beyond limit becomes an ellipsis. Text reads no more of s than necessary. A limit below 3, the length of the
// ellipsis, yields "".
func Text(s string, limit int) string {
	var text strings.Builder
	var last rune
	gap := false // white space is pending
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

// cut shortens valid UTF-8 to limit bytes.
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

// sequence returns the length of a control sequence (ESC [ … letter) at the beginning of s, or 0.
func sequence(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x7e:
			return i // malformed: the rest is text
		}
	}
	return len(s)
}

// Error returns a non-nil err with a printable text of at most limit bytes, because net/http quotes text of peers, such as a
// proxy's status line. errors.Is and errors.As are unchanged. For an error of http.Client it returns the cause: the rest repeats
// the URL with its possibly secret query.
func Error(err error, limit int) error {
	if wrapper, ok := err.(*url.Error); ok { //nolint:errorlint // http.Client returns it itself
		err = wrapper.Err
	}
	text := err.Error()
	if safe := Text(text, limit); safe != text {
		return &sanitizedError{error: err, text: safe}
	}
	return err
}

type sanitizedError struct {
	error
	text string
}

func (e *sanitizedError) Error() string { return e.text }

func (e *sanitizedError) Unwrap() error { return e.error }

// URL returns a URL without its user, password, query and fragment, even if it cannot be parsed. A password may contain a
// character that ends a URL's host: then only the scheme is left.
func URL(raw string) string {
	at := strings.LastIndex(raw, "@")
	query := strings.IndexAny(raw, "?#")
	switch {
	case at >= 0 && query >= 0 && query < at:
		switch scheme, _, _ := strings.Cut(strings.ToLower(raw), "://"); scheme {
		case "https", "http", "socks5":
			return scheme + "://…"
		}
		return "://…"
	case query >= 0:
		raw = raw[:query]
	}
	if at >= 0 {
		return "…" + Text(raw[at:], maxStatusWord)
	}
	return Text(raw, maxStatusWord)
}

const (
	// MaxMessage is the limit of a Status's message, in bytes: some messages list every invalid field.
	MaxMessage = 16 << 10
	// maxStatusWord is the limit of a reason, a name or a field, in bytes.
	maxStatusWord = 1 << 10
)

// Status makes the texts of a Status from a server or a node safe to print, in place.
func Status(status *metav1.Status) {
	status.Message = Text(status.Message, MaxMessage)
	status.Reason = metav1.StatusReason(Text(string(status.Reason), maxStatusWord))
	details := status.Details
	if details == nil {
		return
	}
	for _, text := range []*string{&details.Name, &details.Group, &details.Kind} {
		*text = Text(*text, maxStatusWord)
	}
	for i := range details.Causes {
		cause := &details.Causes[i]
		cause.Type = metav1.CauseType(Text(string(cause.Type), maxStatusWord))
		cause.Message = Text(cause.Message, MaxMessage)
		cause.Field = Text(cause.Field, maxStatusWord)
	}
}

// Format implements fmt.Formatter for types with secrets. It writes the text of LogValue for every verb: with String alone, %d
// and %x would print the bytes of a key.
func Format(state fmt.State, value slog.LogValuer) {
	_, _ = io.WriteString(state, value.LogValue().String()) // fmt.State returns no error
}

// JSON implements json.Marshaler with the text of [Format].
func JSON(value slog.LogValuer) ([]byte, error) { return json.Marshal(value.LogValue().String()) }

// Join returns the first limit elements of a list, and the number of omitted elements.
func Join(elements []string, limit int) string {
	if len(elements) <= limit {
		return strings.Join(elements, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(elements[:limit], ", "), len(elements)-limit)
}
