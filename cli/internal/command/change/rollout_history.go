package change

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/unstructured"
)

// Annotations and labels of the deployment controller.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	templateHashLabel  = "pod-template-hash"
)

// revision is a version of an object's pod template.
type revision struct {
	number   int64
	object   *unstructured.Object // the ReplicaSet or ControllerRevision
	template map[string]any
}

type rolloutHistoryOptions struct {
	rolloutOptions

	revision int64
}

func rolloutHistoryCommand(s *command.State) *cobra.Command {
	o := &rolloutHistoryOptions{}
	cmd := &cobra.Command{
		Use:     "history (TYPE NAME | TYPE/NAME) [flags]",
		Short:   "View rollout history",
		Long:    "View previous rollout revisions and configurations.",
		Example: "  anyctl rollout history deployment/web\n  anyctl rollout history daemonset/agent --revision=3",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkArgs(args); err != nil {
				return err
			}
			if o.revision < 0 {
				return fmt.Errorf("revision must be a positive integer: %v", o.revision)
			}
			if err := o.output.Complete(s.Out, flags.DryRunNone); err != nil {
				return err
			}
			return o.visit(cmd.Context(), s, args, "shown", func(t *resource.Info) error { return o.print(cmd.Context(), s, t) })
		},
	}
	o.addFlags(cmd, s)
	o.output.AddFlags(cmd.Flags())
	cmd.Flags().Int64Var(&o.revision, "revision", 0, "See the details, including podTemplate of the revision specified")
	return cmd
}

func (o *rolloutHistoryOptions) print(ctx context.Context, s *command.State, t *resource.Info) error {
	revisions, err := revisionsOf(ctx, s, t)
	if err != nil {
		return err
	}
	if o.revision > 0 {
		at := slices.IndexFunc(revisions, func(r revision) bool { return r.number == o.revision })
		if at < 0 {
			return errors.New("unable to find the specified revision")
		}
		revisions = revisions[at : at+1]
	}
	if !o.output.IsDefault() {
		for _, r := range revisions {
			if err := o.output.Object(r.object, ""); err != nil {
				return err
			}
		}
		return nil
	}
	switch {
	case len(revisions) == 0:
		return o.output.Object(t.Object, "\nNo rollout history found.")
	case o.revision > 0:
		text, err := templateText(revisions[0].template)
		if err != nil {
			return err
		}
		return o.output.Object(t.Object, fmt.Sprintf("with revision #%d\n%s", o.revision, text))
	}
	return o.output.Object(t.Object, "\n"+historyTable(revisions))
}

func historyTable(revisions []revision) string {
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "REVISION\tCHANGE-CAUSE")
	for _, r := range revisions {
		cause := r.object.GetAnnotations()[changeCause]
		if cause == "" {
			cause = "<none>"
		}
		fmt.Fprintf(w, "%d\t%s\n", r.number, cause)
	}
	_ = w.Flush() // writes to a buffer cannot fail
	return text.String()
}

// templateText formats a pod template as indented YAML.
func templateText(template map[string]any) (string, error) {
	data, err := unstructured.EncodeYAML(&unstructured.Object{Object: template})
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return "Pod Template:\n  " + strings.Join(lines, "\n  ") + "\n", nil
}

// revisionsOf returns the revisions of a deployment, daemon set or stateful set, oldest first.
func revisionsOf(ctx context.Context, s *command.State, t *resource.Info) ([]revision, error) {
	kind := t.Object.GroupVersionKind().GroupKind()
	var owned string
	switch {
	case isKind(t.Object, "Deployment"):
		owned = "ReplicaSet"
	case isKind(t.Object, "DaemonSet", "StatefulSet"):
		owned = "ControllerRevision"
	default:
		return nil, fmt.Errorf("no history viewer has been implemented for %q", kind.String())
	}
	client, err := s.Client(ctx)
	if err != nil {
		return nil, err
	}
	resource, err := client.ForKind(ctx, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: owned})
	if err != nil {
		return nil, err
	}
	selector, err := selectorOf(t.Object)
	if err != nil {
		return nil, err
	}
	var revisions []revision
	for obj, err := range resource.Namespace(t.Namespace).List(ctx, &metav1.ListOptions{LabelSelector: selector}) {
		if err != nil {
			return nil, fmt.Errorf("unable to find history controlled by %s %s: %w", kind.Kind, t.Name, err)
		}
		if !metav1.IsControlledBy(obj, t.Object) {
			continue
		}
		if r, found := revisionOf(obj); found {
			revisions = append(revisions, r)
		}
	}
	sort.Slice(revisions, func(i, j int) bool { return revisions[i].number < revisions[j].number })
	return revisions, nil
}

// revisionOf decodes a revision. It returns false for a ReplicaSet without a revision number.
func revisionOf(obj *unstructured.Object) (revision, bool) {
	if obj.GetKind() == "ReplicaSet" {
		template, _, _ := unstructured.Get[map[string]any](obj, "spec", "template")
		n, err := strconv.ParseInt(obj.GetAnnotations()[revisionAnnotation], 10, 64)
		return revision{number: n, object: obj, template: template}, err == nil
	}
	template, _, _ := unstructured.Get[map[string]any](obj, "data", "spec", "template")
	delete(template, "$patch")
	return revision{number: nested.Int(obj.Object, "revision"), object: obj, template: template}, true
}

// selectorOf returns spec.selector of a workload as a string for ListOptions.
func selectorOf(obj *unstructured.Object) (string, error) {
	content, _, err := unstructured.Get[map[string]any](obj, "spec", "selector")
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	var selector metav1.LabelSelector
	if err := json.Unmarshal(data, &selector); err != nil {
		return "", fmt.Errorf("selector of %s %q: %w", obj.GetKind(), obj.GetName(), err)
	}
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return "", fmt.Errorf("selector of %s %q: %w", obj.GetKind(), obj.GetName(), err)
	}
	return parsed.String(), nil
}
