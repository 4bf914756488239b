package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"

	"github.com/anykind/anykind/internal/sanitize"
)

// ExitError reports a command with an exit code other than 0.
type ExitError struct {
	// Code is the exit code. A command ended by a signal has 128 plus the signal's number.
	Code int
	// Stderr is the end of the command's standard error, at most 32 KiB, if collected by [Cmd.Output].
	Stderr []byte
}

func (e *ExitError) Error() string { return fmt.Sprintf("the command ended with exit code %d", e.Code) }

// maxStatus limits a Status, in bytes.
const maxStatus = 1 << 20

// decodeStatus decodes the Status of the error channel up to its last brace. It may arrive in pieces.
func decodeStatus(channel io.Reader) (*metav1.Status, error) {
	limited := &limitedReader{Reader: channel, what: "the server's Status", limit: maxStatus, left: maxStatus}
	var status metav1.Status
	if err := json.NewDecoder(limited).Decode(&status); err != nil {
		return nil, fmt.Errorf("the server's Status cannot be decoded: %w", err)
	}
	if status.Status == "" {
		return nil, errors.New("the server's Status is neither Success nor Failure")
	}
	return &status, nil
}

// exitError returns nil for success, a *ExitError, or the *apierrors.StatusError of a command that could not run.
func exitError(status *metav1.Status) error {
	if status.Status == metav1.StatusSuccess {
		return nil
	}
	if status.Reason == remotecommand.NonZeroExitCodeReason && status.Details != nil {
		for _, cause := range status.Details.Causes {
			code, err := strconv.Atoi(cause.Message)
			if cause.Type == remotecommand.ExitCodeCauseType && err == nil && code != 0 {
				return &ExitError{Code: code}
			}
		}
	}
	sanitize.Status(status)
	status.Message = sanitize.Text(status.Message, maxMessage)
	return &apierrors.StatusError{ErrStatus: *status}
}
