package restmapper

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NoMatchError says that the server serves nothing by that name. apimachinery's meta.IsNoMatchError recognizes it.
type NoMatchError struct {
	// Name is what was asked for.
	Name string
	// Near are names that the server does serve and that may have been meant, the nearest first.
	Near []string
	// Versions are the versions that the server has of what was asked for in another one.
	Versions []string
	// Unreadable tells, for each group version that might hold the name but could not be read, why not.
	Unreadable []error
}

func (e *NoMatchError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "the server serves no resource or kind %q", e.Name)
	if len(e.Versions) > 0 {
		fmt.Fprintf(&text, " in that version, but in %s", strings.Join(e.Versions, ", "))
	}
	if len(e.Near) > 0 {
		fmt.Fprintf(&text, ": did you mean %s?", strings.Join(e.Near, ", "))
	}
	for _, err := range e.Unreadable {
		fmt.Fprintf(&text, "; %v", err)
	}
	return text.String()
}

// Is makes errors.Is and meta.IsNoMatchError find apimachinery's own error for the same thing.
func (e *NoMatchError) Is(target error) bool {
	_, ok := target.(*meta.NoResourceMatchError)
	return ok
}

// Unwrap gives the reasons why group versions could not be read.
func (e *NoMatchError) Unwrap() []error { return e.Unreadable }

// AmbiguousError says that a name means several resources. apimachinery's meta.IsAmbiguousError recognizes it.
type AmbiguousError struct {
	// Name is what was asked for.
	Name string
	// Candidates are what it may mean, in the server's order of preference: the first is what kubectl would take.
	Candidates []schema.GroupVersionResource
}

func (e *AmbiguousError) Error() string {
	names := make([]string, 0, len(e.Candidates))
	for _, gvr := range e.Candidates {
		names = append(names, gvr.GroupResource().String())
	}
	return fmt.Sprintf("%q means several resources: say which of %s", e.Name, strings.Join(names, ", "))
}

// Is makes errors.Is and meta.IsAmbiguousError find apimachinery's own error for the same thing.
func (e *AmbiguousError) Is(target error) bool {
	_, ok := target.(*meta.AmbiguousResourceError)
	return ok
}

func isNoMatch(err error) bool {
	var noMatch *NoMatchError
	return errors.As(err, &noMatch)
}
