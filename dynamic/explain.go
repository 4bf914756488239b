package dynamic

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// explain makes a refusal that says more than its text one of this package's errors, which unwrap to the
// *apierrors.StatusError. method and path are what was asked.
func explain(method, path string, err error) error {
	var refused *apierrors.StatusError
	if !errors.As(err, &refused) {
		return err
	}
	request := method + " " + path
	if conflicts := conflictsOf(refused); len(conflicts) > 0 {
		return &ApplyConflictError{Conflicts: conflicts, request: request, status: refused}
	}
	if budgets := disruptionsOf(refused); len(budgets) > 0 {
		return &DisruptionError{Causes: budgets, request: request, status: refused}
	}
	if unknown, duplicate := fieldsOf(refused.ErrStatus.Message); len(unknown)+len(duplicate) > 0 {
		return &FieldsError{
			Unknown: unknown, Duplicate: duplicate, request: request, status: refused,
			undeclared: strings.HasSuffix(refused.ErrStatus.Message, undeclaredError),
		}
	}
	return err
}

// causes are the causes of one type that a Status gives.
func causes(refused *apierrors.StatusError, of metav1.CauseType) []metav1.StatusCause {
	if refused.ErrStatus.Details == nil {
		return nil
	}
	var found []metav1.StatusCause
	for _, cause := range refused.ErrStatus.Details.Causes {
		if cause.Type == of {
			found = append(found, cause)
		}
	}
	return found
}
