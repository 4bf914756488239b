package dynamic

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzInvalidFields checks that any two names are parsed, and that no text does harm.
func FuzzInvalidFields(f *testing.F) {
	f.Add("spec.foo", `a"b, c`, "yaml: unmarshal errors:\n  line 5: key \"a\" already set in map")
	f.Add("", "\n", "failed to create typed patch object (/; v1, Kind=X): errors:\n  .a: field not declared in schema")
	f.Fuzz(func(t *testing.T, one, two, text string) {
		unknown, duplicate := invalidFields(text + "strict decoding error: unknown field " + strconv.Quote(one) + ", duplicate field " + strconv.Quote(two))
		if strings.Contains(one+two, "strict decoding error: ") {
			return // the text's end is what counts
		}
		assert.Equal(t, []string{one}, unknown)
		assert.Equal(t, []string{two}, duplicate)
		invalidFields(text)
		invalidFields("strict decoding error: " + text)
	})
}

func FuzzFieldConflicts(f *testing.F) {
	f.Add("one", "scale", "text")
	f.Add(`a"b`, "", `conflict with "x" at now`)
	f.Fuzz(func(t *testing.T, manager, sub, text string) {
		conflicts := fieldConflicts(&apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldManagerConflict, Message: "conflict with " + strconv.Quote(manager) + " with subresource " + strconv.Quote(sub)},
			{Type: metav1.CauseTypeFieldManagerConflict, Message: text},
		}}}})
		assert.Equal(t, FieldConflict{Manager: manager, Subresource: sub}, conflicts[0])
		assert.Len(t, conflicts, 2)
	})
}
