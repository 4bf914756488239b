package dynamic

import (
	"fmt"
	"strings"

	"github.com/anykind/anykind/internal/sanitize"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// disruptionBudget is the type of cause by which a server tells that a budget, not its own load, made it refuse.
const disruptionBudget metav1.CauseType = "DisruptionBudget"

// DisruptionError says that a disruption budget does not allow to evict a pod now. It unwraps to the server's
// *apierrors.StatusError, so apierrors.IsTooManyRequests knows it. See
// https://kubernetes.io/docs/tasks/run-application/configure-pdb/.
type DisruptionError struct {
	// Causes are the server's words: The disruption budget web needs 2 healthy pods and has 2 currently.
	Causes  []string
	request string
	status  *apierrors.StatusError
}

func (e *DisruptionError) Error() string {
	return fmt.Sprintf("%s: not allowed now: %s", e.request, sanitize.Text(strings.Join(e.Causes, "; "), maxMessage))
}

// Unwrap is the server's own error.
func (e *DisruptionError) Unwrap() error { return e.status }

func disruptionsOf(refused *apierrors.StatusError) []string {
	var texts []string
	for _, cause := range causes(refused, disruptionBudget) {
		texts = append(texts, cause.Message)
	}
	return texts
}
