package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
)

// maxStatus is more than any Status needs.
const maxStatus = 1 << 20

// verdict gathers the Status of the error channel, which may come in pieces. It is parsed once, when its last brace has
// come.
type verdict struct {
	text    []byte
	end     objectEnd
	status  metav1.Status
	reached bool
}

// Write adds a piece.
func (v *verdict) Write(piece []byte) (int, error) {
	if v.reached {
		return len(piece), nil
	}
	whole := v.end.find(piece)
	rest := piece
	if whole >= 0 {
		rest = piece[:whole]
	}
	if len(v.text)+len(rest) > maxStatus {
		return 0, errors.New("the server's Status is larger than 1 MiB")
	}
	v.text = append(v.text, rest...)
	if whole < 0 {
		return len(piece), nil
	}
	if err := json.Unmarshal(v.text, &v.status); err != nil {
		return 0, fmt.Errorf("the server's Status cannot be read: %w", err)
	}
	if v.status.Status == "" {
		return 0, errors.New("the server's Status says neither success nor failure")
	}
	v.reached, v.text = true, nil
	return len(piece), nil
}

// objectEnd finds the end of a JSON object that comes in pieces.
type objectEnd struct {
	depth            int
	inString, escape bool
}

// find returns the index behind the object's last brace, or -1 if that is yet to come.
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

// err is how the command ended: nil, a *ExitError, or a *apierrors.StatusError of what kept it from running.
func (v *verdict) err() error {
	if v.status.Status == metav1.StatusSuccess {
		return nil
	}
	if v.status.Reason == remotecommand.NonZeroExitCodeReason && v.status.Details != nil {
		for _, cause := range v.status.Details.Causes {
			code, err := strconv.Atoi(cause.Message)
			if cause.Type == remotecommand.ExitCodeCauseType && err == nil && code != 0 {
				return &ExitError{Code: code}
			}
		}
	}
	return sanitized(&apierrors.StatusError{ErrStatus: v.status})
}

// ExitError is a command that ran and ended with a code other than 0.
type ExitError struct {
	// Code is the exit code: 128 and the signal's number where a signal ended the command.
	Code int
	// Stderr is the end of what the command wrote to its standard error, at most 32 KiB, where [Cmd.Output] collected
	// it.
	Stderr []byte
}

func (e *ExitError) Error() string { return fmt.Sprintf("the command ended with exit code %d", e.Code) }
