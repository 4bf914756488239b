package applysets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/progress"
)

// DeleteOptions configure Delete.
type DeleteOptions struct {
	DryRun flags.DryRun
	// Timeout limits the deletion. 0 is no limit.
	Timeout time.Duration
	// IgnoreNotFound makes a set without a parent a success.
	IgnoreNotFound bool
	// Print writes the line of a deleted object.
	Print func(*command.State, applyset.Reference) error
}

// Delete deletes all objects of the set and its parent, and waits until they are gone. It rejects arguments and all flags of delete
// that DeleteOptions lack.
func (f *Flags) Delete(cmd *cobra.Command, s *command.State, opts *DeleteOptions) error {
	if len(cmd.Flags().Args()) > 0 {
		return errors.New("--applyset is incompatible with resource arguments: all objects of the set are deleted")
	}
	for _, name := range []string{
		"filename", "kustomize", "all", "all-namespaces", "selector", "field-selector", "cascade", "grace-period", "force", "now", "wait",
		"interactive", "raw",
	} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s is incompatible with --applyset", name)
		}
	}
	if opts.DryRun == flags.DryRunClient {
		return errors.New("--dry-run=client doesn't work with --applyset (did you mean --dry-run=server instead?)")
	}
	ctx := cmd.Context()
	set, err := f.Open(ctx, s, nil)
	if err != nil {
		return err
	}
	if opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, opts.Timeout)
		defer cancel()
	}
	return deleteSet(ctx, s, set, opts)
}

func deleteSet(ctx context.Context, s *command.State, set *applyset.Set, opts *DeleteOptions) error {
	display := progress.New(s.Err)
	defer display.Close()
	out := *s
	out.Out = display.Above(s.Out)
	count := &command.Tally{Verb: "deleted"}
	var errs []error
	onEvent := func(event applyset.Event) {
		switch {
		case event.Err != nil:
			errs = append(errs, event.Err)
			count.Fail(failedName(event))
			return
		case event.Action == applyset.Kept:
			s.Errorf("Warning: %s is kept: %s", event.Object, event.Reason)
			return
		}
		count.Done++
		display.Update("delete", "%d objects deleted, waiting until they are gone", count.Done)
		if err := opts.Print(&out, event.Object); err != nil {
			errs = append(errs, err)
		}
	}
	events, err := set.Delete(ctx, &applyset.ApplyOptions{DryRun: opts.DryRun == flags.DryRunServer, OnEvent: onEvent})
	display.Close()
	if opts.IgnoreNotFound && apierrors.IsNotFound(err) && len(events) == 0 {
		return nil
	}
	return count.Report(s, errors.Join(append(errs, setErrors(err, events, nil)...)...))
}
