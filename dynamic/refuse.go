package dynamic

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"github.com/anykind/anykind/internal/retry"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RefusedError reports that a call cannot work and that no request was made. apierrors.IsNotFound holds for one whose cause
// is a subresource that the server does not serve, and apierrors.IsMethodNotSupported for a verb; neither is a
// *apierrors.StatusError, which is what a server answered.
type RefusedError struct {
	// Verb is the API verb, such as "get" or "deletecollection".
	Verb string
	// Resource is the resource as Resource.String names it.
	Resource string
	// Name is the object's name; "" where the call is about a collection.
	Name string
	// Reason is what is wrong, and what to do.
	Reason string
	cause  error
}

func (e *RefusedError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s %s: %s", e.Verb, e.Resource, e.Reason)
	}
	return fmt.Sprintf("%s %s %q: %s", e.Verb, e.Resource, e.Name, e.Reason)
}

// Unwrap returns the cause: why a selector cannot be parsed, for example.
func (e *RefusedError) Unwrap() error { return e.cause }

func (r *Resource) refuse(verb, name, reason string, args ...any) error {
	return r.refuseFor(nil, verb, name, reason, args...)
}

// refuseFor is refuse with a cause; nil is the reason itself. It would be the same at another attempt.
func (r *Resource) refuseFor(cause error, verb, name, reason string, args ...any) error {
	refused := &RefusedError{Verb: verb, Resource: r.String(), Name: name, Reason: fmt.Sprintf(reason, args...)}
	if cause == nil {
		cause = errors.New(refused.Reason)
	}
	refused.cause = retry.Terminal(cause)
	return refused
}

// unservedError is the cause of a refusal for which the server would have a Status. It has the code, reason and kind of
// that, and no object's name: it is about a path, not about an object.
type unservedError struct{ status metav1.Status }

func (r *Resource) unserved(code int32, reason metav1.StatusReason, text string) error {
	return &unservedError{metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: text,
		Details: &metav1.StatusDetails{Group: r.mapping.GVR.Group, Kind: r.mapping.GVR.Resource},
	}}
}

func (e *unservedError) Error() string { return e.status.Message }

// Status implements apierrors.APIStatus, by which apierrors.IsNotFound and others classify errors.
func (e *unservedError) Status() metav1.Status { return e.status }

// checkVerb refuses what the server does not serve.
func (r *Resource) checkVerb(verb, name string) error {
	verbs := r.mapping.Verbs
	if r.sub != "" {
		sub, ok := r.mapping.Subresource(r.sub)
		if !ok {
			var served []string
			for _, other := range r.mapping.Subresources {
				served = append(served, other.Name)
			}
			reason := fmt.Sprintf("the server serves no such subresource (there are: %s)", listed(served))
			return r.refuseFor(r.unserved(http.StatusNotFound, metav1.StatusReasonNotFound, reason), verb, name, "%s", reason)
		}
		verbs = sub.Verbs
	}
	for _, served := range verbs {
		if served == verb {
			return nil
		}
	}
	reason := fmt.Sprintf("the server does not support the verb (it has: %s)", listed(verbs))
	return r.refuseFor(r.unserved(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, reason), verb, name, "%s", reason)
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// unfitForPath says why a name cannot be a segment of a URL's path, or "". The server's own rules for names are
// narrower, and its to enforce.
func unfitForPath(name string) string {
	if name == "" {
		return "is empty"
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return "contains a control character"
	}
	return strings.Join(content.IsPathSegmentName(name), " and ")
}
