package dynamic

import (
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// RefusedError says that a call cannot work and that no request was made.
type RefusedError struct {
	// Verb is the API verb, such as "get" or "deletecollection".
	Verb string
	// Resource is the resource as Resource.String names it.
	Resource string
	// Name is the object's name; "" where the call is about a collection.
	Name string
	// Reason is what is wrong, and what to do.
	Reason string
}

func (e *RefusedError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s %s: %s", e.Verb, e.Resource, e.Reason)
	}
	return fmt.Sprintf("%s %s %q: %s", e.Verb, e.Resource, e.Name, e.Reason)
}

func (r *Resource) refuse(verb, name, reason string, args ...any) error {
	return &RefusedError{Verb: verb, Resource: r.String(), Name: name, Reason: fmt.Sprintf(reason, args...)}
}

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
			return r.refuse(verb, name, "the server serves no such subresource (there are: %s)", listed(served))
		}
		verbs = sub.Verbs
	}
	for _, served := range verbs {
		if served == verb {
			return nil
		}
	}
	return r.refuse(verb, name, "the server does not support the verb (it has: %s)", listed(verbs))
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
