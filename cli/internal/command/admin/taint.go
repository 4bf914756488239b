// Package admin has the commands of cluster administrators: taint, certificate and auth reconcile.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// Commands returns the commands of the root.
func Commands(s *command.State) []*cobra.Command {
	return []*cobra.Command{taintCommand(s), certificateCommand(s)}
}

type taintOptions struct {
	objects   resource.Finder
	write     flags.Write
	output    command.Output
	overwrite bool

	added, removed []taint
}

func taintCommand(s *command.State) *cobra.Command {
	o := &taintOptions{}
	cmd := &cobra.Command{
		Use:   "taint NODE NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N=VAL_N:TAINT_EFFECT_N",
		Short: "Update the taints on one or more nodes",
		Long: "Update the taints on one or more nodes. A taint is KEY=VALUE:EFFECT or KEY:EFFECT. The effect is NoSchedule, PreferNoSchedule " +
			"or NoExecute. KEY:EFFECT- removes a taint, KEY- all taints with the key.",
		Example: "  anyctl taint nodes worker dedicated=gpu:NoSchedule\n  anyctl taint nodes worker dedicated:NoSchedule-\n  anyctl taint node -l pool=gpu dedicated-",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	fs := cmd.Flags()
	o.objects.Connection = s.Connection
	o.objects.Selection.AddLabelFlag(fs)
	fs.BoolVar(&o.objects.All, "all", false, "Select all nodes in the cluster")
	o.write.AddDryRunFlag(fs)
	o.write.AddFieldManagerFlag(fs)
	o.write.AddValidateFlag(fs)
	o.output.AddFlags(fs)
	fs.BoolVar(&o.overwrite, "overwrite", false, "If true, allow taints to be overwritten, otherwise reject taint updates that overwrite existing taints.")
	return cmd
}

func (o *taintOptions) run(cmd *cobra.Command, s *command.State, args []string) error {
	if err := o.write.Complete(s.Errorf); err != nil {
		return err
	}
	if err := o.output.Complete(s.Out, o.write.DryRun); err != nil {
		return err
	}
	nodes, err := o.parse(cmd, args)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if err := o.validate(ctx, s, nodes); err != nil {
		return err
	}
	if o.objects.All || o.objects.Selection.LabelSelector != "" {
		nodes = nodes[:1]
	}
	var errs []error
	for node, err := range o.objects.Objects(ctx, nodes, true) {
		if err == nil {
			err = o.taint(ctx, node)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// parse returns the arguments in front of the taints.
func (o *taintOptions) parse(cmd *cobra.Command, args []string) (nodes []string, err error) {
	first := slices.IndexFunc(args, isTaint)
	switch {
	case first < 0:
		first = len(args)
	default:
		if i := slices.IndexFunc(args[first:], func(arg string) bool { return !isTaint(arg) }); i >= 0 {
			return nil, fmt.Errorf("all resources must be specified before taint changes: %s", args[first+i])
		}
	}
	nodes = args[:first]
	switch {
	case len(nodes) == 0:
		return nil, errors.New("one or more resources must be specified as <resource> <name>")
	case first == len(args):
		return nil, errors.New("at least one taint update is required")
	}
	if o.added, o.removed, err = parseTaints(args[first:]); err != nil {
		return nil, command.UsageError(cmd, "%v", err)
	}
	return nodes, nil
}

func isTaint(arg string) bool { return strings.ContainsAny(arg, "=:") || strings.HasSuffix(arg, "-") }

func (o *taintOptions) validate(ctx context.Context, s *command.State, nodes []string) error {
	handle, err := s.Connection.Handle(ctx, nodes[0])
	if err != nil {
		return err
	}
	if handle.APIResource().GVR.GroupResource().String() != "nodes" {
		return fmt.Errorf("invalid resource type %s, only node types are supported", strings.ToLower(nodes[0]))
	}
	var both []string
	for _, added := range o.added {
		for _, removed := range o.removed {
			if removed.selects(added) {
				both = append(both, removed.Key+"="+removed.Effect)
			}
		}
	}
	hasSelector := o.objects.Selection.LabelSelector != ""
	switch {
	case len(both) > 0:
		return fmt.Errorf("can not both modify and remove the following taint(s) in the same command: %s", strings.Join(both, ", "))
	case o.objects.All && hasSelector:
		return errors.New("setting 'all' parameter with a non empty selector is prohibited")
	case !o.objects.All && !hasSelector && len(nodes) < 2:
		return errors.New("at least one resource name must be specified since 'all' parameter is not set")
	}
	return nil
}

// taint changes a node. The patch replaces the list of taints, and is repeated if the node has changed meanwhile.
func (o *taintOptions) taint(ctx context.Context, node *resource.Info) error {
	operation := ""
	changed := node.Object
	err := dynamic.RetryOnConflict(ctx, func(ctx context.Context) error {
		taints, err := readTaints(changed)
		if err != nil {
			return err
		}
		if existing := o.existing(taints); existing != "" && !o.overwrite {
			return fmt.Errorf("node %s already has %v taint(s) with same effect(s) and --overwrite is false", node.Name, existing)
		}
		if operation, taints, err = o.change(taints); err != nil {
			return err
		}
		if o.write.DryRun == flags.DryRunClient {
			changed = changed.DeepCopy()
			return setTaints(changed, taints)
		}
		patched, err := o.patch(ctx, node, changed.GetResourceVersion(), taints)
		if err != nil {
			if current, getErr := node.Resource.Get(ctx, node.Name, nil); getErr == nil {
				changed = current
			}
			return err
		}
		changed = patched
		return nil
	})
	if err != nil {
		return err
	}
	return o.output.Object(changed, operation)
}

func (o *taintOptions) patch(ctx context.Context, node *resource.Info, resourceVersion string, taints []taint) (*unstructured.Object, error) {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"spec":     map[string]any{"taints": taints},
	})
	if err != nil {
		return nil, err
	}
	return node.Resource.WithDefaults(o.write.Defaults()).Patch(ctx, node.Name, types.MergePatchType, body, nil)
}

// existing returns the keys of added taints already on the node with the same effect.
func (o *taintOptions) existing(taints []taint) string {
	var keys []string
	for _, added := range o.added {
		if slices.ContainsFunc(taints, added.selects) {
			keys = append(keys, added.Key)
		}
	}
	return strings.Join(keys, ",")
}

// change returns the new taints: added taints first, as in kubectl.
func (o *taintOptions) change(taints []taint) (operation string, changed []taint, err error) {
	changed = slices.Clone(o.added)
	for _, old := range taints {
		if !slices.ContainsFunc(changed, old.selects) {
			changed = append(changed, old)
		}
	}
	isAdded := len(changed) != len(taints)
	isRemoved := false
	for _, removed := range o.removed {
		before := len(changed)
		changed = slices.DeleteFunc(changed, removed.selects)
		if isRemoved = len(changed) < before; !isRemoved {
			return "", nil, fmt.Errorf("taint %q not found", removed)
		}
	}
	switch {
	case isAdded && isRemoved || o.overwrite:
		return "modified", changed, nil
	case isAdded:
		return "tainted", changed, nil
	}
	return "untainted", changed, nil
}

// taint is a taint of a node. Without Effect it selects all taints with its key.
type taint struct {
	Key       string `json:"key"`
	Value     string `json:"value,omitempty"`
	Effect    string `json:"effect"`
	TimeAdded string `json:"timeAdded,omitempty"`
}

func (t taint) selects(other taint) bool {
	return t.Key == other.Key && (t.Effect == "" || t.Effect == other.Effect)
}

// String returns the form of the command line.
func (t taint) String() string {
	switch {
	case t.Effect == "" && t.Value == "":
		return t.Key
	case t.Effect == "":
		return t.Key + "=" + t.Value + ":"
	case t.Value == "":
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

func readTaints(node *unstructured.Object) ([]taint, error) {
	items := nested.List(node.Object, "spec", "taints")
	taints := make([]taint, 0, len(items))
	for _, item := range items {
		one, err := unstructured.As[taint](&unstructured.Object{Object: nested.Map(item)})
		if err != nil {
			return nil, err
		}
		taints = append(taints, *one)
	}
	return taints, nil
}

func setTaints(node *unstructured.Object, taints []taint) error {
	data, err := json.Marshal(taints)
	if err != nil {
		return err
	}
	var items []any
	if err := json.Unmarshal(data, &items); err != nil {
		return err
	}
	if len(items) == 0 {
		_, err := unstructured.Delete(node, "spec", "taints")
		return err
	}
	return unstructured.Set(node, items, "spec", "taints")
}

func parseTaints(texts []string) (added, removed []taint, err error) {
	for _, text := range texts {
		plain, isRemoved := strings.CutSuffix(text, "-")
		one, err := parseTaint(plain)
		switch {
		case err != nil:
			return nil, nil, err
		case isRemoved:
			removed = append(removed, taint{Key: one.Key, Effect: one.Effect})
		case one.Effect == "":
			return nil, nil, fmt.Errorf("invalid taint spec: %v", text)
		case slices.ContainsFunc(added, one.selects):
			return nil, nil, fmt.Errorf("duplicated taints with the same key and effect: {%s %s %s <nil>}", one.Key, one.Value, one.Effect)
		default:
			added = append(added, one)
		}
	}
	return added, removed, nil
}

func parseTaint(text string) (taint, error) {
	pair, effect, hasEffect := strings.Cut(text, ":")
	key := pair
	value := ""
	if hasEffect {
		if strings.Contains(effect, ":") {
			return taint{}, fmt.Errorf("invalid taint spec: %v", text)
		}
		if !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, effect) {
			return taint{}, fmt.Errorf("invalid taint effect: %v, unsupported taint effect", effect)
		}
		key, value, _ = strings.Cut(pair, "=")
		if strings.Contains(value, "=") {
			return taint{}, fmt.Errorf("invalid taint spec: %v", text)
		}
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			return taint{}, fmt.Errorf("invalid taint spec: %v, %s", text, strings.Join(problems, "; "))
		}
	}
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return taint{}, fmt.Errorf("invalid taint spec: %v, %s", text, strings.Join(problems, "; "))
	}
	return taint{Key: key, Value: value, Effect: effect}, nil
}
