package inspect

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// nodeOptions are the node selection and the flags shared by cordon, uncordon and drain.
type nodeOptions struct {
	*command.State

	selection flags.Selection
	where     string
	write     flags.Write
	output    *print.Flags
	printer   *print.Printer
}

func (o *nodeOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.selection.LabelSelector, "selector", "l", "", "Selector (label query) of the nodes")
	cmd.Flags().StringVar(&o.where, "where", "", "Select only nodes for which this jq expression holds (e.g. '.spec.unschedulable').")
	o.write.AddDryRunFlag(cmd.Flags())
	o.output.AddObjectFlags(cmd.Flags())
}

func cordonCommand(s *command.State) *cobra.Command {
	return schedulingCommand(s, true, "cordon NODE", "Mark nodes as unschedulable", "  anyctl cordon node-1\n  anyctl cordon -l pool=old")
}

func uncordonCommand(s *command.State) *cobra.Command {
	return schedulingCommand(s, false, "uncordon NODE", "Mark nodes as schedulable", "  anyctl uncordon node-1")
}

func schedulingCommand(s *command.State, unschedulable bool, use, short, example string) *cobra.Command {
	o := &nodeOptions{State: s, output: print.NewFlags()}
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			nodes, err := o.nodes(cmd, args)
			if err != nil {
				return err
			}
			return o.setUnschedulable(cmd.Context(), nodes, unschedulable, o.report)
		},
	}
	o.addFlags(cmd)
	return cmd
}

// node is a node and the handle on nodes.
type node struct {
	*unstructured.Object

	resource *dynamic.Resource
}

// nodes returns the nodes named by the arguments or matching the selector. It fails as a whole if a node cannot be read.
func (o *nodeOptions) nodes(cmd *cobra.Command, args []string) ([]node, error) {
	switch {
	case len(args) == 0 && strings.TrimSpace(o.selection.LabelSelector+o.where) == "":
		return nil, command.UsageError(cmd, "USAGE: %s [flags]", cmd.Use)
	case len(args) > 0 && o.selection.LabelSelector != "":
		return nil, command.UsageError(cmd, "error: cannot specify both a node name and a --selector option")
	}
	if err := o.write.Complete(o.Errorf); err != nil {
		return nil, err
	}
	var err error
	if o.printer, err = o.output.Printer(o.Out); err != nil {
		return nil, err
	}
	where, err := print.ParseWhere(o.where)
	if err != nil {
		return nil, err
	}
	ctx := cmd.Context()
	resource, err := o.Connection.Handle(ctx, "nodes")
	if err != nil {
		return nil, err
	}
	var nodes []node
	for _, argument := range args {
		name, err := o.nodeName(ctx, argument)
		if err != nil {
			return nil, err
		}
		obj, err := resource.Get(ctx, name, nil)
		if err != nil {
			return nil, err
		}
		if nodes, err = appendMatching(nodes, node{obj, resource}, where); err != nil {
			return nil, err
		}
	}
	if len(args) > 0 {
		return nodes, nil
	}
	for obj, err := range resource.List(ctx, o.selection.ListOptions()) {
		if err != nil {
			return nil, err
		}
		if nodes, err = appendMatching(nodes, node{obj, resource}, where); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func appendMatching(nodes []node, n node, where *print.Where) ([]node, error) {
	keep, err := where.Match(n.Object)
	if keep {
		nodes = append(nodes, n)
	}
	return nodes, err
}

// nodeName returns the name in an argument, NAME or node/NAME.
func (o *nodeOptions) nodeName(ctx context.Context, argument string) (string, error) {
	kind, name, hasKind := strings.Cut(argument, "/")
	if !hasKind {
		return argument, nil
	}
	resource, err := o.Connection.Handle(ctx, kind)
	if err == nil && resource.APIResource().GVR.GroupResource().String() != "nodes" {
		err = fmt.Errorf("expected resource of type node, got %q", resource.APIResource().GVR.String())
	}
	return name, err
}

// report prints an object in the format of -o, or the operation.
func (o *nodeOptions) report(obj *unstructured.Object, operation string) {
	_ = o.printer.Changed(obj, operation+o.write.DryRun.Suffix()) // a broken pipe shows at the end of the program
}

// setUnschedulable sets spec.unschedulable of nodes and reports each. Errors are printed and, as in kubectl, do not change the
// exit code, unless ctx is done.
func (o *nodeOptions) setUnschedulable(ctx context.Context, nodes []node, unschedulable bool, report func(*unstructured.Object, string)) error {
	verb := "uncordon"
	state := "uncordoned"
	if unschedulable {
		verb = "cordon"
		state = "cordoned"
	}
	for i := range nodes {
		n := &nodes[i]
		is, _, err := unstructured.Get[bool](n.Object, "spec", "unschedulable")
		if err == nil && is == unschedulable {
			report(n.Object, "already "+state)
			continue
		}
		if err == nil && o.write.DryRun != flags.DryRunClient {
			opts := &metav1.PatchOptions{}
			if o.write.DryRun == flags.DryRunServer {
				opts.DryRun = []string{metav1.DryRunAll}
			}
			patch := []byte(`{"spec":{"unschedulable":true}}`)
			if !unschedulable { // kubectl's patch of typed objects removes the field, too
				patch = []byte(`{"spec":{"unschedulable":null}}`)
			}
			var patched *unstructured.Object
			if patched, err = n.resource.Patch(ctx, n.GetName(), types.StrategicMergePatchType, patch, opts); err == nil {
				n.Object = patched
			}
		}
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			o.Errorf("error: unable to %s node %q: %v", verb, n.GetName(), command.ServerMessage(err))
			continue
		}
		report(n.Object, state)
	}
	return nil
}
