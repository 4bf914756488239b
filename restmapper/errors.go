package restmapper

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/sanitize"
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
	// Group is the API group that was typed, if the server serves no such group.
	Group string
	// Category says that the name is a category, which [Mapper.Resources] takes.
	Category bool
}

func (e *NoMatchError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "the server serves no resource or kind %s", quoted(e.Name))
	if len(e.Versions) > 0 {
		fmt.Fprintf(&text, " in that version, but in %s", joined(e.Versions))
	}
	if e.Group != "" {
		fmt.Fprintf(&text, ", and no API group %s", quoted(e.Group))
	}
	if !e.Removed.IsZero() {
		fmt.Fprintf(&text, "; it did until %s", e.Removed.Format(time.RFC3339))
	}
	if e.Category {
		text.WriteString("; it is a category, the name of several resources")
	}
	if len(e.Near) > 0 {
		fmt.Fprintf(&text, ": did you mean %s?", joined(e.Near))
	}
	return text.String()
}

const (
	// maxListed bounds the lists in the text of an error, and maxText each text from outside.
	maxListed = 5
	maxText   = 300
)

func quoted(name string) string { return strconv.Quote(sanitize.Text(name, maxText)) }

// joined lists names, and how many more there are.
func joined(names []string) string {
	if len(names) <= maxListed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), len(names)-maxListed)
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
	return fmt.Sprintf("%s means several resources: say which of %s", quoted(e.Name), joined(names))
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
		causes = append(causes, sanitize.Text(cause.Error(), maxText))
	}
	text := fmt.Sprintf("cannot tell whether the server serves %s: %s", quoted(e.Name), joined(causes))
	if len(e.Near) > 0 {
		text += fmt.Sprintf("; among what could be read, did you mean %s?", joined(e.Near))
	}
	return text
}

// Unwrap gives the causes.
func (e *UnavailableError) Unwrap() []error { return e.Causes }
