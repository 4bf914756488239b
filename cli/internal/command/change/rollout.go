package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/unstructured"
)

// restartedAt is kubectl's annotation for restarting the pods of a template.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// rolloutOptions are the shared options of the rollout commands.
type rolloutOptions struct {
	objects resource.Finder
	write   flags.Write
	output  command.Output
}

func rolloutCommand(s *command.State) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rollout SUBCOMMAND",
		Short:   "Manage the rollout of a resource",
		Long:    "Manage the rollout of one or many resources: deployments, daemonsets, statefulsets.",
		Example: "  anyctl rollout undo deployment/web\n  anyctl rollout status daemonset/agent\n  anyctl rollout restart deployment -l app=web",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.UsageError(cmd, "unknown command %q for %q", args[0], cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
	if !s.IsNamed(cmd.Name()) {
		return cmd
	}
	cmd.AddCommand(
		rolloutHistoryCommand(s),
		rolloutPatchCommand(s, "pause", "Mark the provided resource as paused", "paused", pausePatch),
		rolloutPatchCommand(s, "resume", "Resume a paused resource", "resumed", resumePatch),
		rolloutPatchCommand(s, "restart", "Restart a resource", "restarted", restartPatch),
		rolloutStatusCommand(s),
		rolloutUndoCommand(s),
	)
	return cmd
}

func (o *rolloutOptions) addFlags(cmd *cobra.Command, s *command.State) {
	o.objects.AllowTypes = true
	addFiles(cmd.Flags(), s, &o.objects, "identifying the resource to get from a server")
	o.objects.Selection.AddLabelFlag(cmd.Flags())
	o.objects.AddWhereFlag(cmd.Flags())
}

// checkArgs returns an error without arguments and files.
func (o *rolloutOptions) checkArgs(args []string) error {
	if len(args) == 0 && o.objects.Files.IsEmpty() {
		return errors.New("required resource not specified")
	}
	return nil
}

// visit calls visit for each object, continues after errors, and reports a tally.
func (o *rolloutOptions) visit(ctx context.Context, s *command.State, args []string, verb string, visit func(*resource.Info) error) error {
	count := &command.Tally{Verb: verb}
	var errs []error
	for t, err := range o.objects.Objects(ctx, args, true) {
		if err == nil {
			err = visit(t)
		}
		if err == nil {
			count.Done++
			continue
		}
		errs = append(errs, err)
		if t != nil {
			count.Fail(t.String())
		}
		if ctx.Err() != nil {
			break
		}
	}
	if count.Done+len(errs) == 0 {
		text, err := o.objects.NoneFound(ctx, nil)
		if err != nil {
			return err
		}
		s.Errorf("%s", text)
	}
	return count.Report(s, errors.Join(errs...))
}

// rolloutPatch returns the merge patch for an object, or an error if it does not apply.
type rolloutPatch func(obj *unstructured.Object) (map[string]any, error)

func rolloutPatchCommand(s *command.State, name, short, operation string, patch rolloutPatch) *cobra.Command {
	o := &rolloutOptions{}
	cmd := &cobra.Command{
		Use:     name + " RESOURCE",
		Short:   short,
		Example: "  anyctl rollout " + name + " deployment/web",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkArgs(args); err != nil {
				return err
			}
			if err := o.output.Complete(s.Out, flags.DryRunNone); err != nil {
				return err
			}
			return o.visit(cmd.Context(), s, args, operation, func(t *resource.Info) error {
				return o.patch(cmd.Context(), t, operation, patch)
			})
		},
	}
	o.addFlags(cmd, s)
	o.write.AddFieldManagerFlag(cmd.Flags())
	o.output.AddFlags(cmd.Flags())
	return cmd
}

func (o *rolloutOptions) patch(ctx context.Context, t *resource.Info, operation string, patch rolloutPatch) error {
	content, err := patch(t.Object)
	if err != nil {
		return fmt.Errorf("error: %s %w", t, err)
	}
	body, err := json.Marshal(content)
	if err != nil {
		return err
	}
	patched, err := t.Resource.WithDefaults(o.write.Defaults()).Patch(ctx, t.Name, types.MergePatchType, body, nil)
	if err != nil {
		return fmt.Errorf("failed to patch: %s", command.ServerMessage(err))
	}
	return o.output.Object(patched, operation)
}

// isKind reports whether an object is of the group apps and one of kinds.
func isKind(obj *unstructured.Object, kinds ...string) bool {
	own := obj.GroupVersionKind()
	for _, kind := range kinds {
		if own.Group == "apps" && own.Kind == kind {
			return true
		}
	}
	return false
}

func isPaused(obj *unstructured.Object) bool {
	paused, _, _ := unstructured.Get[bool](obj, "spec", "paused")
	return paused
}

func pausePatch(obj *unstructured.Object) (map[string]any, error) {
	switch {
	case !isKind(obj, "Deployment"):
		return nil, errors.New("pausing is not supported")
	case isPaused(obj):
		return nil, errors.New("is already paused")
	}
	return map[string]any{"spec": map[string]any{"paused": true}}, nil
}

func resumePatch(obj *unstructured.Object) (map[string]any, error) {
	switch {
	case !isKind(obj, "Deployment"):
		return nil, errors.New("resuming is not supported")
	case !isPaused(obj):
		return nil, errors.New("is not paused")
	}
	return map[string]any{"spec": map[string]any{"paused": nil}}, nil
}

func restartPatch(obj *unstructured.Object) (map[string]any, error) {
	now := time.Now().Format(time.RFC3339)
	before, _, _ := unstructured.Get[string](obj, "spec", "template", "metadata", "annotations", restartedAt)
	switch {
	case !isKind(obj, "Deployment", "DaemonSet", "StatefulSet"):
		return nil, errors.New("restarting is not supported")
	case isPaused(obj):
		return nil, errors.New("can't restart paused deployment (run rollout resume first)")
	case before == now:
		return nil, errors.New("was restarted within the past second: wait before you restart it again")
	}
	annotations := map[string]any{restartedAt: now}
	metadata := map[string]any{"metadata": map[string]any{"annotations": annotations}}
	return map[string]any{"spec": map[string]any{"template": metadata}}, nil
}
