package dynamic

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ApplyConflictError says which fields of an applied object other managers own with other values. It unwraps to the
// server's *apierrors.StatusError, so apierrors.IsConflict knows it. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts.
type ApplyConflictError struct {
	// Conflicts are in the server's order; a field has one for each of its managers.
	Conflicts []FieldConflict
	request   string
	status    *apierrors.StatusError
}

// FieldConflict is one field that another manager owns.
type FieldConflict struct {
	// Field is its path: .spec.template.spec.containers[name="web"].image
	Field string
	// Manager owns the field.
	Manager string
	// Subresource is the one that the manager wrote the field through; "" means the object itself.
	Subresource string
	// APIVersion is the one that the manager wrote in, where it updated or patched; "" where it applied.
	APIVersion string
	// Time is when it did so, where the server tells.
	Time time.Time
}

func (e *ApplyConflictError) Error() string {
	var owned []string
	for _, conflict := range e.Conflicts {
		owned = append(owned, conflict.String())
	}
	return fmt.Sprintf("%s: other managers own what is applied: %s: leave these fields out, or set Force to take them over",
		e.request, joined(owned))
}

// Unwrap is the server's own error.
func (e *ApplyConflictError) Unwrap() error { return e.status }

func (c FieldConflict) String() string {
	text := printable(c.Field) + " of " + quotedText(c.Manager)
	if c.Subresource != "" {
		text += " through " + printable(c.Subresource)
	}
	return text
}

// ownership is how a server describes the manager of a field.
var ownership = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^conflict with ("(?:[^"\\]|\\.)*")(?: with subresource ("(?:[^"\\]|\\.)*"))?(?: using (\S+))?(?: at (\S+))?$`)
})

func conflictsOf(refused *apierrors.StatusError) []FieldConflict {
	var conflicts []FieldConflict
	for _, cause := range causes(refused, metav1.CauseTypeFieldManagerConflict) {
		conflict := FieldConflict{Field: cause.Field, Manager: strings.TrimPrefix(cause.Message, "conflict with ")}
		if parts := ownership().FindStringSubmatch(cause.Message); parts != nil {
			conflict.Manager, conflict.Subresource, conflict.APIVersion = unquoted(parts[1]), unquoted(parts[2]), parts[3]
			conflict.Time, _ = time.Parse(time.RFC3339, parts[4]) // zero where there is none
		}
		conflicts = append(conflicts, conflict)
	}
	return conflicts
}

func unquoted(text string) string {
	if plain, err := strconv.Unquote(text); err == nil {
		return plain
	}
	return text
}
