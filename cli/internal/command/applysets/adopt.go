package applysets

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/progress"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// Kubectl is the name of the managers of kubectl and anyctl in Adopt.
const Kubectl = "kubectl"

// Adopt takes the fields of managers over, and the set from its previous tool. It prints the changed objects.
func Adopt(ctx context.Context, s *command.State, set *applyset.Set, objects []*manifest.Object, managers []string, opts *ApplyOptions, display *progress.Display) error {
	return change(s, "adopted", opts.Print, display, objects, func(onEvent func(applyset.Event)) ([]applyset.Event, error) {
		return set.Adopt(ctx, objects, &applyset.AdoptOptions{Managers: selectManagers(managers), OnEvent: onEvent})
	})
}

func selectManagers(names []string) func(metav1.ManagedFieldsEntry) bool {
	isKubectl := slices.Contains(names, Kubectl)
	isNamed := applyset.Managers(append(slices.Clone(names), "anyctl")...)
	return func(entry metav1.ManagedFieldsEntry) bool {
		return isNamed(entry) || isKubectl && applyset.KubectlManagers(entry)
	}
}

// change calls a method of a set, prints its configured objects with the operation, and reports a tally.
func change(s *command.State, operation string, print func(*unstructured.Object, string) error, display *progress.Display, objects []*manifest.Object,
	call func(onEvent func(applyset.Event)) ([]applyset.Event, error),
) error {
	count := &command.Tally{Verb: operation}
	var errs []error
	events, err := call(func(event applyset.Event) {
		if event.Err != nil {
			errs = append(errs, objectError(event.Err))
			count.Fail(failedName(event))
			return
		}
		count.Done++
		display.Update("change", "%d objects %s", count.Done, operation)
		if event.Reason != "" {
			s.Errorf("Warning: %s: %s", event.Object, event.Reason)
		}
		if event.Action == applyset.Configured {
			errs = append(errs, print(event.Live, operation))
		}
	})
	display.Remove("change")
	return count.Report(s, errors.Join(append(errs, setErrors(err, events, objects)...)...))
}

// HandOverCommand returns the command apply hand-over.
func HandOverCommand(s *command.State) *cobra.Command {
	parent := &Flags{}
	output := &command.Output{}
	cmd := &cobra.Command{
		Use:   "hand-over --applyset=[RESOURCE[.GROUP]/]NAME",
		Short: "Hand a set over to kubectl apply --prune --applyset",
		Long: "Hand a set of apply --applyset over to kubectl: kubectl apply --server-side --prune --applyset owns its objects and fields from then on. " +
			"apply --applyset --adopt takes it back.",
		Example:           "  anyctl apply hand-over --applyset=web -n shop",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.UsageError(cmd, "Unexpected args: %v", args)
			}
			if !parent.IsSet() {
				return errors.New("--applyset is required")
			}
			return handOver(cmd.Context(), s, parent, output)
		},
	}
	parent.AddFlags(cmd.Flags(), "to hand over")
	output.AddFlags(cmd.Flags())
	return cmd
}

func handOver(ctx context.Context, s *command.State, parent *Flags, output *command.Output) error {
	if err := output.Complete(s.Out, flags.DryRunNone); err != nil {
		return err
	}
	set, err := parent.Open(ctx, s, nil)
	if err != nil {
		return err
	}
	client, err := s.Client(ctx)
	if err != nil {
		return err
	}
	version, err := client.Discovery().ServerVersion(ctx)
	if err != nil {
		return err
	}
	events, err := set.Handover(ctx, version.GitVersion)
	display := progress.New(s.Err)
	defer display.Close()
	return change(s, "handed over", output.Object, display, nil, func(onEvent func(applyset.Event)) ([]applyset.Event, error) {
		for _, event := range events {
			onEvent(event)
		}
		return events, err
	})
}
