// Package exit reports errors as kubectl does: their texts and the exit code of the program.
package exit

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// Interrupted is 128 + SIGINT, the exit code of an interrupted program in shells.
const Interrupted = 130

// Error is an error with an exit code. A nil Err is silent: the command has already reported the failure.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// WithHelp returns an error with the text of err followed by help. Report writes err as a single line, and help unchanged.
func WithHelp(err error, help string) error { return &helpError{err, help} }

// WithText returns an error with the given text, which Report writes in place of kubectl's text for err.
func WithText(err error, text string) error { return &textError{err, text} }

type textError struct {
	err  error
	text string
}

func (e *textError) Error() string { return e.text }
func (e *textError) Unwrap() error { return e.err }

type helpError struct {
	error
	help string
}

func (e *helpError) Error() string { return e.error.Error() + e.help }

func (e *helpError) Unwrap() error { return e.error }

// Report writes err like kubectl and returns the exit code: 0 for nil, Code of an Error, or 1. Each joined error begins a
// line. Foreign texts, such as names from a server, cannot begin a line: see [printable.Lines]. A broken pipe of the output is
// not reported. A broken connection to the server is.
func Report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	code := 1
	var exit *Error
	if errors.As(err, &exit) {
		code = exit.Code
	}
	var connection *net.OpError // of the connection to the server
	if (errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)) && !errors.As(err, &connection) {
		return code
	}
	text := Message(err)
	if text == "" {
		return code
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, _ = io.WriteString(w, text)
	return code
}

// Message returns kubectl's text for err, or "" for an Error with a nil Err.
func Message(err error) string {
	parts := slices.DeleteFunc(split(err), isSilent)
	switch len(parts) {
	case 0:
		return ""
	case 1:
		err = parts[0]
	default:
		var text bytes.Buffer
		for _, part := range parts {
			if message, ok := standardMessage(part); ok {
				fmt.Fprintln(&text, message)
			} else {
				fmt.Fprintln(&text, lines(part))
			}
		}
		return text.String()
	}
	var config *flags.ConfigError
	if errors.As(err, &config) {
		return "Error in configuration: " + printable.Lines(config.Error())
	}
	if message, ok := invalidMessage(err); ok {
		return message
	}
	if message, ok := standardMessage(err); ok {
		return message
	}
	message := lines(err)
	if strings.HasPrefix(message, "error: ") {
		return message
	}
	return "error: " + message
}

// isSilent reports whether err is an Error with a nil Err.
func isSilent(err error) bool {
	var exit *Error
	return errors.As(err, &exit) && exit.Err == nil
}

// lines returns the text of an error, with its help unchanged.
func lines(err error) string {
	if exit, isExit := err.(*Error); isExit { //nolint:errorlint // an error around the help has another text
		err = exit.Err
	}
	if help, hasHelp := err.(*helpError); hasHelp { //nolint:errorlint // as above
		return printable.Line(help.error.Error()) + help.help
	}
	return printable.Lines(err.Error())
}

// split returns the errors joined in err by errors.Join.
func split(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error }) // only the outermost error is split
	if !ok {
		return []error{err}
	}
	if _, isMapping := err.(*restmapper.UnavailableError); isMapping { //nolint:errorlint // as above
		return []error{err}
	}
	if _, isConfig := err.(*kubeconfig.InvalidError); isConfig { //nolint:errorlint // as above
		return []error{err}
	}
	var parts []error
	for _, part := range joined.Unwrap() {
		parts = append(parts, split(part)...)
	}
	if strings.Join(texts(parts), "\n") != err.Error() {
		return []error{err}
	}
	return parts
}

func texts(errs []error) []string {
	result := make([]string, len(errs))
	for i, err := range errs {
		result[i] = err.Error()
	}
	return result
}

// invalidMessage returns kubectl's text for an error with reason Invalid.
func invalidMessage(err error) (string, bool) {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Reason != metav1.StatusReasonInvalid {
		return "", false
	}
	details := status.ErrStatus.Details
	text := "The request is invalid"
	if details == nil {
		if status.ErrStatus.Message != "" {
			text += ": " + printable.Lines(status.ErrStatus.Message)
		}
		return text, true
	}
	if details.Kind != "" || details.Name != "" {
		text = fmt.Sprintf("The %s %q is invalid", printable.Line(details.Kind), details.Name)
	} else if status.ErrStatus.Message != "" && len(details.Causes) == 0 {
		text += ": " + printable.Lines(status.ErrStatus.Message)
	}
	return withCauses(text, details.Causes), true
}

func withCauses(text string, causes []metav1.StatusCause) string {
	var lines []string
	seen := map[string]bool{}
	for _, cause := range causes {
		line := printable.Lines(cause.Field + ": " + cause.Message)
		if !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	switch len(lines) {
	case 0:
		return text
	case 1:
		return text + ": " + lines[0]
	}
	return text + ": \n* " + strings.Join(lines, "\n* ")
}

func standardMessage(err error) (string, bool) {
	if message, ok := mappingMessage(err); ok {
		return message, true
	}
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		message := printable.Lines(status.ErrStatus.Message)
		switch reason := status.ErrStatus.Reason; {
		case reason == metav1.StatusReasonUnauthorized:
			return "error: You must be logged in to the server (" + message + ")", true
		case reason != "":
			return fmt.Sprintf("Error from server (%s): %s", printable.Line(string(reason)), message), true
		default:
			return "Error from server: " + message, true
		}
	}
	return connectionMessage(err)
}

func mappingMessage(err error) (string, bool) {
	var missing *restmapper.NoMatchError
	var hasText *textError
	if !errors.As(err, &missing) || errors.As(err, &hasText) {
		return "", false
	}
	text := fmt.Sprintf("error: the server doesn't have a resource type %q", missing.Name)
	if len(missing.Suggestions) > 0 {
		text += "\nDid you mean " + printable.Line(strings.Join(missing.Suggestions, ", ")) + "?"
	}
	return text, true
}

func connectionMessage(err error) (string, bool) {
	var failed *net.OpError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.Canceled):
		return "", false
	case errors.As(err, &untrusted):
		return "Unable to connect to the server: tls: failed to verify certificate: " + printable.Lines(untrusted.Err.Error()), true
	case !errors.As(err, &failed):
		return "", false
	case errors.Is(err, syscall.ECONNREFUSED) && failed.Addr != nil:
		return fmt.Sprintf("The connection to the server %s was refused - did you specify the right host or port?", failed.Addr), true
	}
	return "Unable to connect to the server: " + printable.Lines(failed.Error()), true
}
