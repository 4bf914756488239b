package transport

import (
	"github.com/anykind/anykind/internal/sanitize"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lengths in bytes of texts that a peer sent, where they enter an error, a warning or an [Attempt].
const (
	maxMessage = 16 << 10 // a Status's message: some list every invalid field
	maxWord    = 1 << 10
)

// sanitizeStatus makes a Status of a server safe to print.
func sanitizeStatus(status *metav1.Status) {
	status.Message = sanitize.Text(status.Message, maxMessage)
	status.Reason = metav1.StatusReason(sanitize.Text(string(status.Reason), maxWord))
	details := status.Details
	if details == nil {
		return
	}
	for _, text := range []*string{&details.Name, &details.Group, &details.Kind} {
		*text = sanitize.Text(*text, maxWord)
	}
	for i := range details.Causes {
		cause := &details.Causes[i]
		cause.Type = metav1.CauseType(sanitize.Text(string(cause.Type), maxWord))
		cause.Message = sanitize.Text(cause.Message, maxMessage)
		cause.Field = sanitize.Text(cause.Field, maxWord)
	}
}

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
