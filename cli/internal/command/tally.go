package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/anykind/anykind/cli/exit"
)

// Tally counts the changed objects of a command and names the failed objects.
type Tally struct {
	// Verb is the past participle: "applied".
	Verb string
	// Done is the number of changed objects.
	Done   int
	failed []string
}

// Fail counts a failed object.
func (t *Tally) Fail(name string) { t.failed = append(t.failed, name) }

// maxFailedNames is the number of failed objects to name.
const maxFailedNames = 20

// String returns the counts and the failed objects: "2 of 3 objects created; not created: web.yaml: document 3, line 41".
func (t *Tally) String() string {
	names := t.failed
	more := ""
	if len(names) > maxFailedNames {
		more = fmt.Sprintf(", and %d more", len(names)-maxFailedNames)
		names = names[:maxFailedNames]
	}
	return fmt.Sprintf("%d of %d objects %s; not %s: %s%s", t.Done, t.Done+len(t.failed), t.Verb, t.Verb, strings.Join(names, ", "), more)
}

// Report returns err. With a failure among several objects, it reports err and the tally and returns an exit.Error.
func (t *Tally) Report(s *State, err error) error {
	if err == nil || t.Done+len(t.failed) < 2 || len(t.failed) == 0 {
		return err
	}
	code := exit.Report(s.Err, err)
	s.Errorf("%s", t)
	if errors.Is(err, context.Canceled) {
		code = exit.Interrupted
	}
	return &exit.Error{Code: code}
}
