package transport

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lengths in characters of texts that a peer sent, where they enter an error, a warning or an [Attempt].
const (
	maxMessage = 16 << 10 // a Status's message: some list every invalid field
	maxWord    = 1 << 10
)

// printable returns text of a peer as it may be shown on a terminal and written to a log: in one line, control and
// formatting characters escaped, and cut after limit characters.
func printable(text string, limit int) string {
	if len(text) <= limit && isPrintable(text) {
		return text
	}
	var b strings.Builder
	for n := 0; len(text) > 0; n++ {
		if n == limit {
			b.WriteString("…")
			break
		}
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case isShown(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}

func isPrintable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !isShown(r) })
}

// isShown reports whether a character shows as itself: what changes the direction of text does not, nor do line ends.
func isShown(r rune) bool { return r == ' ' || unicode.IsPrint(r) }

// printableStatus makes a Status of a server printable.
func printableStatus(status *metav1.Status) {
	status.Message = printable(status.Message, maxMessage)
	status.Reason = metav1.StatusReason(printable(string(status.Reason), maxWord))
	details := status.Details
	if details == nil {
		return
	}
	for _, text := range []*string{&details.Name, &details.Group, &details.Kind} {
		*text = printable(*text, maxWord)
	}
	for i := range details.Causes {
		cause := &details.Causes[i]
		cause.Type = metav1.CauseType(printable(string(cause.Type), maxWord))
		cause.Message = printable(cause.Message, maxMessage)
		cause.Field = printable(cause.Field, maxWord)
	}
}

// printableError returns err with a printable text. net/http quotes what a peer sent, a proxy's status line for example.
func printableError(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if shown := printable(text, maxMessage); shown != text {
		return &cleanError{error: err, text: shown}
	}
	return err
}

// cleanError is an error with another text.
type cleanError struct {
	error
	text string
}

func (e *cleanError) Error() string { return e.text }

func (e *cleanError) Unwrap() error { return e.error }
