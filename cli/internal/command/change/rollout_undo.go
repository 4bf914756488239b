package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/unstructured"
)

type rolloutUndoOptions struct {
	rolloutOptions

	toRevision int64
}

func rolloutUndoCommand(s *command.State) *cobra.Command {
	o := &rolloutUndoOptions{}
	cmd := &cobra.Command{
		Use:     "undo (TYPE NAME | TYPE/NAME) [flags]",
		Short:   "Undo a previous rollout",
		Long:    "Roll back to a previous rollout.",
		Example: "  anyctl rollout undo deployment/web\n  anyctl rollout undo daemonset/agent --to-revision=3\n  anyctl rollout undo --dry-run=server deployment/web",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkArgs(args); err != nil {
				return err
			}
			if err := o.write.Complete(s.Errorf); err != nil {
				return err
			}
			if err := o.output.Complete(s.Out, o.write.DryRun); err != nil {
				return err
			}
			return o.visit(cmd.Context(), s, args, "rolled back", func(t *resource.Info) error { return o.undo(cmd.Context(), s, t) })
		},
	}
	o.addFlags(cmd, s)
	o.write.AddDryRunFlag(cmd.Flags())
	o.output.AddFlags(cmd.Flags())
	cmd.Flags().Int64Var(&o.toRevision, "to-revision", 0, "The revision to rollback to. Default to 0 (last revision).")
	return cmd
}

func (o *rolloutUndoOptions) undo(ctx context.Context, s *command.State, t *resource.Info) error {
	if _, isApplied := t.Object.GetAnnotations()[command.LastApplied]; isApplied {
		s.Errorf("Warning: resource %s/%s was previously managed with '%[3]s apply'. Rolling back will not update the %[4]s annotation, which may "+
			"cause unexpected behavior on future '%[3]s apply' operations. Consider using '%[3]s apply' with your previous configuration file instead.",
			t.Resource.APIResource().GVR.Resource, t.Name, s.Connection.FieldManager, command.LastApplied)
	}
	if !isKind(t.Object, "Deployment", "DaemonSet", "StatefulSet") {
		return fmt.Errorf("no rollbacker has been implemented for %q", t.Object.GroupVersionKind().GroupKind())
	}
	revisions, err := revisionsOf(ctx, s, t)
	if err != nil {
		return err
	}
	chosen, err := o.choose(t.Object, revisions)
	if err != nil {
		return err
	}
	if o.write.DryRun == flags.DryRunClient {
		text, err := templateText(chosen.template)
		if err != nil {
			return err
		}
		return o.output.Object(t.Object, "will roll back to "+text)
	}
	if isPaused(t.Object) {
		return errors.New("you cannot rollback a paused deployment; resume it first with 'anyctl rollout resume' and try again")
	}
	current, _, _ := unstructured.Get[map[string]any](t.Object, "spec", "template")
	if reflect.DeepEqual(withoutHash(chosen.template), withoutHash(current)) {
		return o.output.Object(t.Object, fmt.Sprintf("skipped rollback (current template already matches revision %d)", o.toRevision))
	}
	patchType, body, err := undoPatch(t.Object, chosen)
	if err != nil {
		return err
	}
	changed, err := t.Resource.WithDefaults(o.write.Defaults()).Patch(ctx, t.Name, patchType, body, nil)
	if err != nil {
		return fmt.Errorf("failed restoring revision %d: %s", o.toRevision, command.ServerMessage(err))
	}
	return o.output.Object(changed, "rolled back")
}

// choose returns the revision toRevision, or the second-latest revision for 0.
func (o *rolloutUndoOptions) choose(obj *unstructured.Object, revisions []revision) (*revision, error) {
	switch {
	case o.toRevision != 0:
		at := slices.IndexFunc(revisions, func(r revision) bool { return r.number == o.toRevision })
		if at < 0 {
			return nil, fmt.Errorf("unable to find specified revision %v in history", o.toRevision)
		}
		return &revisions[at], nil
	case len(revisions) < 2 && obj.GetKind() == "Deployment":
		return nil, fmt.Errorf("no rollout history found for deployment %q", obj.GetName())
	case len(revisions) < 2:
		return nil, errors.New("no last revision to roll back to")
	}
	return &revisions[len(revisions)-2], nil
}

// withoutHash returns a copy of a template without pod-template-hash, a label added by the deployment controller.
func withoutHash(template map[string]any) map[string]any {
	copied := runtime.DeepCopyJSON(template)
	delete(nested.Map(copied, "metadata", "labels"), templateHashLabel)
	return copied
}

// undoPatch returns the patch for restoring a revision. data of a ControllerRevision is such a patch.
func undoPatch(obj *unstructured.Object, to *revision) (types.PatchType, []byte, error) {
	if to.object.GetKind() == "ControllerRevision" {
		data, _, err := unstructured.Get[map[string]any](to.object, "data")
		if err != nil {
			return "", nil, err
		}
		body, err := json.Marshal(data)
		return types.StrategicMergePatchType, body, err
	}
	annotations := map[string]string{}
	for key, value := range obj.GetAnnotations() {
		if isKeptAnnotation(key) {
			annotations[key] = value
		}
	}
	for key, value := range to.object.GetAnnotations() {
		if !isKeptAnnotation(key) {
			annotations[key] = value
		}
	}
	body, err := json.Marshal([]any{
		map[string]any{"op": "replace", "path": "/spec/template", "value": withoutHash(to.template)},
		map[string]any{"op": "replace", "path": "/metadata/annotations", "value": annotations},
	})
	return types.JSONPatchType, body, err
}

// isKeptAnnotation reports whether a rollback keeps an annotation of the deployment.
func isKeptAnnotation(key string) bool {
	name, isController := strings.CutPrefix(key, "deployment.kubernetes.io/")
	if isController {
		return slices.Contains([]string{"revision", "revision-history", "desired-replicas", "max-replicas"}, name)
	}
	return key == command.LastApplied || key == "deprecated.deployment.rollback.to"
}
