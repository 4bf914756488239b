package restmapper

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/sanitize"
)

// NoMatchError is the error for a name without a served resource or kind. meta.IsNoMatchError recognizes it.
type NoMatchError struct {
	Name string // as looked up
	// Suggestions are resources with similar names, the most similar first.
	Suggestions []string
	// ServedVersions are the versions with the name if the requested version lacks it.
	ServedVersions []string
	// RemovedAt is the time of the first snapshot without the name; zero if this client never knew the name.
	RemovedAt time.Time
	// UnknownGroup is the typed API group if the server does not serve it.
	UnknownGroup string
	// IsCategory is set if the name is a category. [Mapper.Resources] accepts categories.
	IsCategory bool
}

func (e *NoMatchError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "the server serves no resource or kind %s", quoted(e.Name))
	if len(e.ServedVersions) > 0 {
		fmt.Fprintf(&text, " in that version, but in %s", sanitize.Join(e.ServedVersions, maxListed))
	}
	if e.UnknownGroup != "" {
		fmt.Fprintf(&text, ", and no API group %s", quoted(e.UnknownGroup))
	}
	if !e.RemovedAt.IsZero() {
		fmt.Fprintf(&text, "; it did until %s", e.RemovedAt.Format(time.RFC3339))
	}
	if e.IsCategory {
		text.WriteString("; it is a category, the name of several resources")
	}
	if len(e.Suggestions) > 0 {
		fmt.Fprintf(&text, ": did you mean %s?", sanitize.Join(e.Suggestions, maxListed))
	}
	return text.String()
}

const (
	maxListed = 5   // names in a list in the text of an error
	maxText   = 300 // bytes of each text from outside
)

func quoted(name string) string { return strconv.Quote(sanitize.Text(name, maxText)) }

// Is reports whether target is apimachinery's error for a missing name.
func (e *NoMatchError) Is(target error) bool {
	_, ok := target.(*meta.NoResourceMatchError)
	return ok
}

// AmbiguousError is the error for a name with several matching resources. meta.IsAmbiguousError recognizes it.
type AmbiguousError struct {
	Name string // as looked up
	// Candidates are the matching resources in the server's order of preference. kubectl would take the first.
	Candidates []schema.GroupVersionResource
}

func (e *AmbiguousError) Error() string {
	var names []string
	for _, gvr := range e.Candidates {
		names = append(names, gvr.GroupResource().String())
	}
	return fmt.Sprintf("%s means several resources: say which of %s", quoted(e.Name), sanitize.Join(names, maxListed))
}

// Is reports whether target is apimachinery's error for an ambiguous name.
func (e *AmbiguousError) Is(target error) bool {
	_, ok := target.(*meta.AmbiguousResourceError)
	return ok
}

// UnavailableError is the error for a name that cannot be resolved now: discovery fails, or a candidate group version cannot be
// read. With a typed group, its unhealthy versions are candidates. Without a group, only unhealthy versions without an earlier
// snapshot are candidates. A later lookup may succeed; meta.IsNoMatchError is false.
type UnavailableError struct {
	Name string // as looked up
	// Suggestions are readable resources with similar names, the most similar first.
	Suggestions []string
	// Causes are the discovery errors. errors.As finds the server's *apierrors.StatusError in them.
	Causes []error
}

func (e *UnavailableError) Error() string {
	var causes []string
	for _, cause := range e.Causes {
		causes = append(causes, sanitize.Text(cause.Error(), maxText))
	}
	text := fmt.Sprintf("cannot tell whether the server serves %s: %s", quoted(e.Name), sanitize.Join(causes, maxListed))
	if len(e.Suggestions) > 0 {
		text += fmt.Sprintf("; among what could be read, did you mean %s?", sanitize.Join(e.Suggestions, maxListed))
	}
	return text
}

// Unwrap returns the causes.
func (e *UnavailableError) Unwrap() []error { return e.Causes }

// noMatch returns the error for a query without a match: an UnavailableError if an unreadable version may have it, and otherwise
// a NoMatchError.
func (x *index) noMatch(q *query) error {
	name := q.String()
	isCategory := q.isBare() && x.isCategory(q.interpretations[0].name)
	if causes := x.unreadable(q); len(causes) > 0 && !isCategory {
		return &UnavailableError{Name: name, Suggestions: x.suggest(q), Causes: causes}
	}
	err := &NoMatchError{Name: name, ServedVersions: x.servedVersions(q), RemovedAt: x.removedAt(q), IsCategory: isCategory}
	if len(err.ServedVersions) == 0 && !isCategory {
		err.Suggestions = x.suggest(q)
		err.UnknownGroup = x.unknownGroup(q)
	}
	return err
}

// unknownGroup returns the typed group if it is no prefix of a served group.
func (x *index) unknownGroup(q *query) string {
	typed := q.interpretations[0]
	switch {
	case q.count == 2 && !isVersion(typed.version):
		typed = q.interpretations[1]
	case q.count == 1 && isVersion(typed.group): // pods.v1
		return ""
	}
	hasPrefix := func(g discovery.Group) bool { return strings.HasPrefix(g.Name, typed.group) }
	if !strings.ContainsFunc(typed.group, unicode.IsLetter) || slices.ContainsFunc(x.snapshot.Groups, hasPrefix) {
		return ""
	}
	return typed.group
}

// isVersion reports whether a part of a name looks like a version.
func isVersion(part string) bool {
	return len(part) > 1 && part[0] == 'v' && '0' <= part[1] && part[1] <= '9' && !strings.Contains(part, ".")
}

// servedVersions returns the versions with the name if the query has a version.
func (x *index) servedVersions(q *query) []string {
	var versions []string
	for _, in := range q.all() {
		if in.version == "" && len(q.versions) == 0 {
			continue
		}
		in.version = ""
		for resource := range x.matches(&in, rankName) {
			if !slices.Contains(versions, resource.GVR.Version) {
				versions = append(versions, resource.GVR.Version)
			}
		}
	}
	return versions
}

// removedAt returns the DetectedAt of a removed resource with the name, or the zero time.
func (x *index) removedAt(q *query) time.Time {
	for _, removed := range x.snapshot.Removed {
		for _, in := range q.all() {
			if in.isNameOf(removed.Resource) && q.acceptsVersion(removed.Resource.GVR.Version) {
				return removed.DetectedAt
			}
		}
	}
	return time.Time{}
}

// unreadable returns an error for each unhealthy group version with a possible match.
func (x *index) unreadable(q *query) []error {
	var causes []error
	for gv, version := range x.snapshot.Versions() {
		switch {
		case version.Healthy() || !q.mayBeInVersion(gv, version):
		case version.Err != nil:
			causes = append(causes, fmt.Errorf("%s could not be read: %w", gv, version.Err))
		default:
			causes = append(causes, fmt.Errorf("%s is stale: the server cannot reach the API server behind it (see APIService %s.%s)", gv, gv.Version, gv.Group))
		}
	}
	return causes
}

// mayBeInVersion reports whether an unhealthy version may have the query. Without a typed group only a version without known
// resources counts: a broken group must not make every mistyped name unavailable.
func (q *query) mayBeInVersion(gv schema.GroupVersion, version *discovery.Version) bool {
	return q.acceptsVersion(gv.Version) && slices.ContainsFunc(q.all(), func(in interpretation) bool {
		switch {
		case in.version != "" && in.version != gv.Version:
			return false
		case !in.hasGroup:
			return len(version.Resources) == 0
		}
		return in.mayBeInGroup(gv.Group)
	})
}
