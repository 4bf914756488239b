package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/anykind/anykind/internal/sanitize"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
)

// ExitError reports a command that ended with a code other than 0.
type ExitError struct {
	// Code is the exit code; for a command that a signal ended, 128 plus the signal's number.
	Code int
	// Stderr is the end of the command's standard error, at most 32 KiB, if [Cmd.Output] collected it.
	Stderr []byte
}

func (e *ExitError) Error() string { return fmt.Sprintf("the command ended with exit code %d", e.Code) }

// maxStatus is more than any Status needs.
const maxStatus = 1 << 20

// exitStatus decodes the Status of the error channel, which may arrive in pieces. It is decoded once, after its last brace.
type exitStatus struct {
	text     []byte
	end      objectEnd
	status   metav1.Status
	complete bool
}

// Write adds a piece.
func (s *exitStatus) Write(piece []byte) (int, error) {
	if s.complete {
		return len(piece), nil
	}
	end := s.end.find(piece)
	rest := piece
	if end >= 0 {
		rest = piece[:end]
	}
	if len(s.text)+len(rest) > maxStatus {
		return 0, errors.New("the server's Status is larger than 1 MiB")
	}
	s.text = append(s.text, rest...)
	if end < 0 {
		return len(piece), nil
	}
	if err := json.Unmarshal(s.text, &s.status); err != nil {
		return 0, fmt.Errorf("the server's Status cannot be decoded: %w", err)
	}
	if s.status.Status == "" {
		return 0, errors.New("the server's Status is neither Success nor Failure")
	}
	s.complete, s.text = true, nil
	return len(piece), nil
}

// err returns nil for success, a *ExitError, or the *apierrors.StatusError of a command that could not run.
func (s *exitStatus) err() error {
	if s.status.Status == metav1.StatusSuccess {
		return nil
	}
	if s.status.Reason == remotecommand.NonZeroExitCodeReason && s.status.Details != nil {
		for _, cause := range s.status.Details.Causes {
			code, err := strconv.Atoi(cause.Message)
			if cause.Type == remotecommand.ExitCodeCauseType && err == nil && code != 0 {
				return &ExitError{Code: code}
			}
		}
	}
	sanitize.Status(&s.status)
	s.status.Message = sanitize.Text(s.status.Message, maxMessage)
	return &apierrors.StatusError{ErrStatus: s.status}
}

// objectEnd finds the end of a JSON object that arrives in pieces.
type objectEnd struct {
	depth            int
	inString, escape bool
}

// find returns the index after the object's last brace, or -1 if that has not arrived.
func (e *objectEnd) find(piece []byte) int {
	for i, c := range piece {
		switch {
		case e.escape:
			e.escape = false
		case e.inString:
			e.escape, e.inString = c == '\\', c != '"'
		case c == '"':
			e.inString = true
		case c == '{' || c == '[':
			e.depth++
		case c == '}' || c == ']':
			if e.depth--; e.depth <= 0 {
				return i + 1
			}
		}
	}
	return -1
}
