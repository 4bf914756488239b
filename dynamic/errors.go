package dynamic

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/transport"
)

// ApplyConflictError lists the applied fields owned by other managers with different values. It unwraps to the server's
// *apierrors.StatusError, so apierrors.IsConflict holds. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts.
type ApplyConflictError struct {
	// Conflicts has an entry for each field and manager, in the server's order.
	Conflicts []FieldConflict
	explained
}

// explained is the request and Status behind an error of this package.
type explained struct {
	request string
	status  *apierrors.StatusError
}

// Unwrap returns the server's error.
func (e *explained) Unwrap() error { return e.status }

// FieldConflict is a field owned by a different manager.
type FieldConflict struct {
	// Field is the path of the field: .spec.template.spec.containers[name="web"].image
	Field string `json:"field"`
	// Manager is the field's owner.
	Manager string `json:"manager"`
	// Subresource is the subresource through which the manager wrote the field. "" means the object itself.
	Subresource string `json:"subresource,omitempty"`
	// APIVersion is the version of the manager's update or patch. It is "" if the manager applied the field.
	APIVersion string `json:"apiVersion,omitempty"`
	// Time is the time of the manager's write, if known.
	Time time.Time `json:"time,omitzero"`
}

func (e *ApplyConflictError) Error() string {
	var conflicts []string
	for _, conflict := range e.Conflicts {
		conflicts = append(conflicts, conflict.String())
	}
	return fmt.Sprintf("%s: other managers own applied fields: %s (leave these fields out, or set Force to take them over)",
		e.request, sanitize.Join(conflicts, maxListed))
}

func (c FieldConflict) String() string {
	text := printable(c.Field) + " of " + quoted(c.Manager)
	if c.Subresource != "" {
		text += " through " + printable(c.Subresource)
	}
	return text
}

// ManagedFieldsEntry returns the entry of the owner in metadata.managedFields, as far as the conflict names it: without fields.
func (c FieldConflict) ManagedFieldsEntry() metav1.ManagedFieldsEntry {
	entry := metav1.ManagedFieldsEntry{
		Manager: c.Manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: c.APIVersion, Subresource: c.Subresource,
	}
	if c.APIVersion != "" { // an apply has none
		entry.Operation = metav1.ManagedFieldsOperationUpdate
	}
	return entry
}

// ReadinessError reports the failure of an object during a wait for [Ready].
type ReadinessError struct {
	// Result is the object's status: Failed, with the field and message of the failure.
	Result readiness.Result
}

func (e *ReadinessError) Error() string { return "it is " + e.Result.String() }

// FieldValidationError lists unknown and duplicate fields of a written object. Create, Update and Patch return it with
// FieldValidation "Strict", Apply with any FieldValidation. It unwraps to the server's *apierrors.StatusError. The text of that
// error may contain the whole object, secrets included. The text of FieldValidationError has only the fields. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation.
type FieldValidationError struct {
	// Unknown and Duplicate are paths of fields: spec.template.foo. In a JSON patch they begin with the index of the operation:
	// [0].value.
	Unknown, Duplicate []string
	applied            bool // the server's text for Apply differs
	explained
}

func (e *FieldValidationError) Error() string {
	var fields []string
	for _, field := range e.Unknown {
		fields = append(fields, "unknown field "+quoted(field))
	}
	for _, field := range e.Duplicate {
		fields = append(fields, "duplicate field "+quoted(field))
	}
	if e.applied {
		return fmt.Sprintf("%s: %s%s (correct what is written)", e.request, sanitize.Join(fields, maxListed), notDeclared)
	}
	return fmt.Sprintf("%s: %s%s (correct what is written)", e.request, strictDecoding, sanitize.Join(fields, maxListed))
}

// DisruptionBudgetError reports that a disruption budget does not allow the eviction of a pod now. It unwraps to the server's
// *apierrors.StatusError, so apierrors.IsTooManyRequests holds. See
// https://kubernetes.io/docs/tasks/run-application/configure-pdb/.
type DisruptionBudgetError struct {
	// Causes are the server's messages: The disruption budget web needs 2 healthy pods and has 2 currently.
	Causes []string
	explained
}

func (e *DisruptionBudgetError) Error() string {
	return fmt.Sprintf("%s: not allowed now: %s", e.request, sanitize.Text(strings.Join(e.Causes, "; "), sanitize.MaxMessage))
}

// pathNotFoundError reports an unserved path. It unwraps to the *apierrors.StatusError of the response. The response itself has
// no Status.
type pathNotFoundError struct {
	server, resource string
	explained
}

func (e *pathNotFoundError) Error() string {
	return fmt.Sprintf("%s: the server %s does not serve %s (has its definition or version been removed?)", e.request, e.server, e.resource)
}

// pathNotFound is the body of an API server's response for an unserved path.
const pathNotFound = "404 page not found"

// pathNotFoundError returns a pathNotFoundError if the response has the body pathNotFound. Otherwise it returns err.
func (e *endpoint) pathNotFoundError(request *transport.Request, err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || !slices.ContainsFunc(causes(status, metav1.CauseTypeUnexpectedServerResponse), func(cause metav1.StatusCause) bool {
		return strings.TrimSpace(cause.Message) == pathNotFound
	}) {
		return err
	}
	return &pathNotFoundError{e.conn.Server(), e.String() + " in version " + e.apiResource.GVR.Version, explained{request.Method + " " + request.Path, status}}
}

// detailedError converts err to the matching error of this package, or returns err.
func detailedError(request *transport.Request, err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return err
	}
	explained := explained{request.Method + " " + request.Path, status}
	if conflicts := fieldConflicts(status); len(conflicts) > 0 {
		return &ApplyConflictError{conflicts, explained}
	}
	if budgets := causes(status, "DisruptionBudget"); len(budgets) > 0 {
		budgetError := &DisruptionBudgetError{explained: explained}
		for _, cause := range budgets {
			budgetError.Causes = append(budgetError.Causes, cause.Message)
		}
		return budgetError
	}
	message := status.ErrStatus.Message
	if unknown, duplicate := invalidFields(message); len(unknown)+len(duplicate) > 0 {
		return &FieldValidationError{unknown, duplicate, strings.HasSuffix(message, notDeclared), explained}
	}
	return err
}

func causes(status *apierrors.StatusError, causeType metav1.CauseType) (found []metav1.StatusCause) {
	if status.ErrStatus.Details == nil {
		return nil
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Type == causeType {
			found = append(found, cause)
		}
	}
	return found
}

// conflictMessage matches the server's description of a field's manager.
var conflictMessage = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^conflict with ("(?:[^"\\]|\\.)*")(?: with subresource ("(?:[^"\\]|\\.)*"))?(?: using (\S+))?(?: at (\S+))?$`)
})

func fieldConflicts(status *apierrors.StatusError) (conflicts []FieldConflict) {
	for _, cause := range causes(status, metav1.CauseTypeFieldManagerConflict) {
		conflict := FieldConflict{Field: cause.Field, Manager: strings.TrimPrefix(cause.Message, "conflict with ")}
		if match := conflictMessage().FindStringSubmatch(cause.Message); match != nil {
			conflict.Manager = unquoted(match[1])
			conflict.Subresource = unquoted(match[2])
			conflict.APIVersion = match[3]
			conflict.Time, _ = time.Parse(time.RFC3339, match[4]) // zero if absent
		}
		conflicts = append(conflicts, conflict)
	}
	return conflicts
}

// Texts of servers, known from kubectl.
const (
	strictDecoding = "strict decoding error: "
	notDeclared    = ": field not declared in schema"
)

// invalidFields parses the fields in a server's message. It returns all fields or none. Line breaks in message may have been
// removed. The text before the last known prefix may quote the object.
func invalidFields(message string) (unknown, duplicate []string) {
	if i := strings.LastIndex(message, strictDecoding); i >= 0 {
		return parseStrictFields(message[i+len(strictDecoding):])
	}
	const typedPatch = "failed to create typed patch object "
	if i := strings.LastIndex(message, typedPatch); i >= 0 {
		return parseUndeclaredFields(message[i+len(typedPatch):]), nil
	}
	return nil, nil
}

// strictField matches a single error of strict decoding: unknown field "a", or duplicate field "b", also in the format of the
// server's YAML parser.
var strictField = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:, )?(?:(?:json patch )?(unknown|duplicate) field |(?:yaml: unmarshal errors:)?\s+line \d+: key )` +
		`("(?:[^"\\]|\\.)*")(?: already set in map)?`)
})

func parseStrictFields(list string) (unknown, duplicate []string) {
	for list != "" {
		match := strictField().FindStringSubmatch(list)
		if match == nil {
			return nil, nil
		}
		if match[1] == "unknown" {
			unknown = append(unknown, unquoted(match[2]))
		} else {
			duplicate = append(duplicate, unquoted(match[2]))
		}
		list = list[len(match[0]):]
	}
	return unknown, duplicate
}

// parseUndeclaredFields parses the rest of an apply error: (namespace/name; version, Kind=Kind): .spec.foo: field not declared
// in schema. Fields are separated by white space.
func parseUndeclaredFields(list string) (unknown []string) {
	_, list, found := strings.Cut(list, "): ")
	if !found {
		return nil
	}
	list = strings.TrimSpace(strings.TrimPrefix(list, "errors:"))
	for list != "" {
		field, rest, found := strings.Cut(list, notDeclared)
		if !found || strings.Contains(field, ": ") || rest != "" && !strings.HasPrefix(rest, "\n") && !strings.HasPrefix(rest, " ") {
			return nil
		}
		unknown = append(unknown, strings.TrimPrefix(field, "."))
		list = strings.TrimSpace(rest)
	}
	return unknown
}

// Limits for text from servers and objects in errors.
const (
	maxWord   = 1 << 10 // bytes
	maxListed = 20      // elements of a list
)

// printable sanitizes and shortens text from a server or object to a single line.
func printable(text string) string { return sanitize.Text(text, maxWord) }

// quoted quotes and shortens text from a server or object.
func quoted(text string) string {
	if len(text) > maxWord {
		text = sanitize.Text(text, maxWord)
	}
	return strconv.Quote(text)
}

func unquoted(text string) string {
	if plain, err := strconv.Unquote(text); err == nil {
		return plain
	}
	return text
}
