package stream

import (
	"github.com/anykind/anykind/internal/sanitize"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits of others' texts in errors, in bytes.
const (
	maxMessage = 2 << 10 // of a Status, or of what a program said
	maxName    = 256
)

// sanitized makes the Status of a node or a server safe to print.
func sanitized(err *apierrors.StatusError) *apierrors.StatusError {
	status := &err.ErrStatus
	status.Message = sanitize.Text(status.Message, maxMessage)
	status.Reason = metav1.StatusReason(sanitize.Text(string(status.Reason), maxName))
	return err
}
