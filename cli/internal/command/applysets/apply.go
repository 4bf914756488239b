package applysets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/cli/progress"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// ApplyOptions configure Apply.
type ApplyOptions struct {
	applyset.ApplyOptions
	// Print writes an object with the operation.
	Print func(obj *unstructured.Object, operation string) error
	// Wait waits until all objects are ready, for Timeout at most. 0 is no limit.
	Wait    bool
	Timeout time.Duration
}

// Apply applies objects and prunes the set. It prints objects in the order of the work.
func Apply(ctx context.Context, s *command.State, set *applyset.Set, objects []*manifest.Object, opts *ApplyOptions, display *progress.Display) error {
	count := &command.Tally{Verb: "applied"}
	var errs []error
	opts.OnEvent = func(event applyset.Event) {
		if event.Err != nil {
			errs = append(errs, objectError(event.Err))
			count.Fail(failedName(event))
			return
		}
		if event.Action != applyset.Pruned && event.Action != applyset.Kept {
			count.Done++
		}
		display.Update("apply", "%d of %d objects applied", count.Done, len(objects))
		if err := PrintEvent(s, event, opts.Print); err != nil {
			errs = append(errs, err)
		}
	}
	events, err := set.Apply(ctx, objects, &opts.ApplyOptions)
	display.Remove("apply")
	if err = errors.Join(append(errs, setErrors(err, events, objects)...)...); err != nil {
		return count.Report(s, err)
	}
	if !opts.Wait || opts.DryRun {
		return nil
	}
	return wait(ctx, set, objects, opts.Timeout, display)
}

// PrintEvent prints the object of an event, or a warning.
func PrintEvent(s *command.State, event applyset.Event, print func(obj *unstructured.Object, operation string) error) error {
	switch event.Action {
	case applyset.Created, applyset.Configured:
		if event.Reason != "" {
			s.Errorf("Warning: %s: %s", event.Object, event.Reason)
		}
		return print(event.Live, "serverside-applied")
	case applyset.Unchanged:
		return print(event.Live, "unchanged")
	case applyset.Pruned:
		return print(event.Live, "pruned")
	case applyset.Kept:
		s.Errorf("Warning: %s left the set and is kept: %s", event.Object, event.Reason)
	case applyset.NotChecked:
		s.Errorf("Warning: %s is not checked: %s", event.Object, event.Reason)
	case applyset.Failed: // has an error
	}
	return nil
}

func failedName(event applyset.Event) string {
	var failed *applyset.ObjectError
	if errors.As(event.Err, &failed) && failed.Position != "" {
		return fmt.Sprintf("%s (%s)", event.Object, failed.Position)
	}
	return event.Object.String()
}

// objectError returns the error of an object with conflicts in kubectl's form.
func objectError(err error) error {
	var conflict *dynamic.ApplyConflictError
	if errors.As(err, &conflict) {
		return command.ConflictsError(conflict)
	}
	return err
}

// setErrors splits the error of a set, without the errors of events. Unknown kinds have kubectl's text, and a set of a different tool
// has a hint for the command line.
func setErrors(err error, events []applyset.Event, objects []*manifest.Object) []error {
	var tooling *applyset.ToolingError
	if errors.As(err, &tooling) {
		return []error{fmt.Errorf("the set of %s is managed by tooling %q (take it over with --adopt)", tooling.Parent, tooling.Tooling)}
	}
	parts := unreported(err, events)
	for i, part := range parts {
		parts[i] = resolveError(part, objects)
	}
	return parts
}

// resolveError returns kubectl's error for an object of an unknown kind. Any other error is returned unchanged.
func resolveError(err error, objects []*manifest.Object) error {
	var failed *applyset.ObjectError
	var noMatch *restmapper.NoMatchError
	if !errors.As(err, &failed) || !errors.As(err, &noMatch) {
		return err
	}
	for _, obj := range objects {
		if obj.Position() == failed.Position && obj.GetName() == failed.Object.Name {
			return resource.ResolveError(obj, failed.Err)
		}
	}
	return err
}

// unreported splits the error of a set, without the errors of events.
func unreported(err error, events []applyset.Event) []error {
	var joined interface{ Unwrap() []error }
	if err == nil || !errors.As(err, &joined) {
		return []error{err}
	}
	reported := map[error]bool{}
	for _, event := range events {
		reported[event.Err] = true
	}
	var others []error
	hasObjects := false
	for _, part := range joined.Unwrap() {
		_, isObject := part.(*applyset.ObjectError) //nolint:errorlint // only the outermost error is an object's own
		hasObjects = hasObjects || isObject
		if !reported[part] {
			others = append(others, part)
		}
	}
	if !hasObjects {
		return []error{err}
	}
	return others
}

// wait waits until the objects are ready. display has a line for each unready object.
func wait(ctx context.Context, set *applyset.Set, objects []*manifest.Object, timeout time.Duration, display *progress.Display) error {
	waitCtx := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		waitCtx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	ready := map[applyset.Reference]bool{}
	err := set.Wait(waitCtx, objects, &applyset.WaitOptions{OnProgress: func(ref applyset.Reference, result readiness.Result) {
		ready[ref] = result.Status == readiness.Current
		if ready[ref] {
			display.Remove(ref.String())
		} else {
			display.Update(ref.String(), "waiting for %s: it is %s", ref, result)
		}
	}})
	display.Close()
	var notReady *applyset.NotReadyError
	if ctx.Err() != nil || !errors.As(err, &notReady) {
		return err
	}
	return notReadyError(notReady, len(objects))
}

// notReadyError formats a line for each object, followed by its warnings.
func notReadyError(err *applyset.NotReadyError, count int) error {
	text := fmt.Sprintf("%d of %d objects are not ready", len(err.Objects), count)
	if errors.Is(err, context.DeadlineExceeded) {
		text = "timed out waiting: " + text
	}
	help := ""
	for _, obj := range err.Objects {
		help += "\n* " + printable.Line(fmt.Sprintf("%s is %s", obj.Object, obj.Result))
		for _, warning := range obj.Warnings {
			help += "\n    " + printable.Line(warning)
		}
	}
	return exit.WithHelp(errors.New(text), help)
}
