package transport

import "github.com/anykind/anykind/internal/sanitize"

// Lengths in bytes of texts that a peer sent, where they enter an error, a warning or an [Attempt].
const (
	maxMessage = 16 << 10 // a Status's message: some list every invalid field
	maxWord    = 1 << 10
)

// sanitizeError returns err with a text that is safe to print. net/http quotes what a peer sent, a proxy's status line for
// example.
func sanitizeError(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if safe := sanitize.Text(text, maxMessage); safe != text {
		return &sanitizedError{error: err, text: safe}
	}
	return err
}

// sanitizedError is an error with another text.
type sanitizedError struct {
	error
	text string
}

func (e *sanitizedError) Error() string { return e.text }

func (e *sanitizedError) Unwrap() error { return e.error }
