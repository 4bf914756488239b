package restmapper

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NoMatchError says that the server serves nothing by that name, and never did or no longer does. apimachinery's
// meta.IsNoMatchError recognizes it.
type NoMatchError struct {
	// Name is what was asked for.
	Name string
	// Near are names that the server does serve and that may have been meant, the nearest first.
	Near []string
	// Versions are the versions that the server has of what was asked for in another one.
	Versions []string
	// Removed is when this client noticed that the server no longer serves what it once did; zero where it never knew
	// the name.
	Removed time.Time
	// Category says that the name is a category, which [Mapper.Resources] takes.
	Category bool
}

func (e *NoMatchError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "the server serves no resource or kind %q", e.Name)
	if len(e.Versions) > 0 {
		fmt.Fprintf(&text, " in that version, but in %s", strings.Join(e.Versions, ", "))
	}
	if !e.Removed.IsZero() {
		fmt.Fprintf(&text, "; it did until %s", e.Removed.Format(time.RFC3339))
	}
	if e.Category {
		text.WriteString("; it is a category, the name of several resources")
	}
	text.WriteString(didYouMean(e.Near))
	return text.String()
}

func didYouMean(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf(": did you mean %s?", strings.Join(near, ", "))
}

// Is makes errors.Is and meta.IsNoMatchError find apimachinery's own error for the same thing.
func (e *NoMatchError) Is(target error) bool {
	_, ok := target.(*meta.NoResourceMatchError)
	return ok
}

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

// UnavailableError says that nobody can tell now whether the server serves the name: discovery fails, or a group
// version that may hold the name cannot be read. That is every unhealthy version of a group that was typed; for a bare
// name, those of which not even an earlier answer is known. Asking again later may help; meta.IsNoMatchError is false.
type UnavailableError struct {
	// Name is what was asked for.
	Name string
	// Near are names that could be read and that may have been meant, the nearest first.
	Near []string
	// Causes tell what could not be read and why. errors.As finds in them what the server said, an
	// *apierrors.StatusError.
	Causes []error
}

func (e *UnavailableError) Error() string {
	causes := make([]string, 0, len(e.Causes))
	for _, cause := range e.Causes {
		causes = append(causes, cause.Error())
	}
	return fmt.Sprintf("cannot tell whether the server serves %q: %s%s", e.Name, strings.Join(causes, "; "), didYouMean(e.Near))
}

// Unwrap gives the causes.
func (e *UnavailableError) Unwrap() []error { return e.Causes }
