package change

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cli/internal/command"
)

// sourceError adds the file name to err like kubectl: error when creating "web.yaml": …
func sourceError(verb, source string, err error) error {
	if source == "" || err == nil {
		return err
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return fmt.Errorf("error when %s %q: %w", verb, source, err)
	}
	changed := *status
	changed.ErrStatus.Message = fmt.Sprintf("error when %s %q: %s", verb, source, status.ErrStatus.Message)
	return &changed
}

// tally counts the changed objects of a command and names the failed objects.
type tally struct {
	verb   string // "applied"
	done   int
	failed []string
}

func (t *tally) fail(name string) { t.failed = append(t.failed, name) }

// maxFailedNames is the number of failed objects to name.
const maxFailedNames = 20

// String returns the counts and the failed objects: "2 of 3 objects created; not created: web.yaml: document 3, line 41".
func (t *tally) String() string {
	names := t.failed
	more := ""
	if len(names) > maxFailedNames {
		more = fmt.Sprintf(", and %d more", len(names)-maxFailedNames)
		names = names[:maxFailedNames]
	}
	return fmt.Sprintf("%d of %d objects %s; not %s: %s%s", t.done, t.done+len(t.failed), t.verb, t.verb, strings.Join(names, ", "), more)
}

// report returns err. With a failure among several objects, it reports err and the tally and returns an ExitError.
func (t *tally) report(s *command.State, err error) error {
	if err == nil || t.done+len(t.failed) < 2 || len(t.failed) == 0 {
		return err
	}
	code := command.Report(s.Err, err)
	s.Errorf("%s", t)
	if errors.Is(err, context.Canceled) {
		code = command.InterruptedCode
	}
	return &command.ExitError{Code: code}
}
