package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/cli/internal/terminal"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/cli/tree"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/readiness"
)

// treeOptions are the options of the command tree.
type treeOptions struct {
	*command.State

	finder        resource.Finder
	references    bool
	exitWithState bool
}

func treeCommand(s *command.State) *cobra.Command {
	o := &treeOptions{State: s, finder: resource.Finder{Connection: s.Connection, AllowTypes: true}}
	cmd := &cobra.Command{
		Use:   "tree (TYPE [NAME... | -l label] | TYPE/NAME...)",
		Short: "Show what objects own, with the readiness of each",
		Long: "Show objects with their owners above them and all that they own, of every kind that the server serves, below.\n\n" +
			"STATUS is computed from each object: Current, InProgress, Failed, Terminating or Unknown. A missing object has NotFound.",
		Example: "  anyctl tree deploy/web\n  anyctl tree deploy/web --references\n  anyctl tree statefulsets -l app=db",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.UsageError(cmd, "an object is required: tree TYPE/NAME")
			}
			return o.run(cmd.Context(), args)
		},
	}
	cmd.Flags().StringVarP(&o.finder.Selection.LabelSelector, "selector", "l", "", "Selector (label query) to filter on")
	cmd.Flags().BoolVarP(&o.finder.Selection.AllNamespaces, "all-namespaces", "A", false, "Show the objects of all namespaces")
	o.finder.AddWhereFlag(cmd.Flags())
	cmd.Flags().BoolVar(&o.references, "references", false,
		"Also show the objects to which the objects refer, such as ConfigMaps, Secrets, volumes and roles, and which of them are missing")
	cmd.Flags().BoolVar(&o.exitWithState, "exit-code", false, "End with exit code 1 unless every object is Current, and no object is missing")
	return cmd
}

func (o *treeOptions) run(ctx context.Context, args []string) error {
	client, err := o.Client(ctx)
	if err != nil {
		return err
	}
	found, err := tree.Find(ctx, client, o.finder.Objects(ctx, args, true), &tree.FindOptions{References: o.references})
	if err != nil {
		return err
	}
	if len(found.Roots) == 0 {
		return reportNone(ctx, o.State, &o.finder)
	}
	return o.write(found)
}

func (o *treeOptions) write(found *tree.Tree) error {
	opts := &tree.WriteOptions{Now: time.Now(), ShowNamespaces: found.Namespace == "", Paint: o.paint()}
	out := o.Out
	if opts.Paint != nil {
		out = printable.Unwrap(out)
	}
	if err := tree.Write(out, found, opts); err != nil {
		return err
	}
	warnUnread(o.State, "Warning: not in the tree", found.Unread)
	if o.exitWithState && !allCurrent(found.Roots) {
		return &exit.Error{Code: 1}
	}
	return nil
}

// warnUnread prints the errors of unread resources after a prefix, in a single line for missing permissions.
func warnUnread(s *command.State, prefix string, errs []error) {
	var forbidden []string
	for _, err := range errs {
		var failed *inventory.ResourceError
		var status apierrors.APIStatus
		switch {
		case !apierrors.IsForbidden(err) || !errors.As(err, &status) || status.Status().Details == nil:
			s.Errorf("%s: %v", prefix, err)
		case errors.As(err, &failed): // the details may be about the list of namespaces
			forbidden = append(forbidden, failed.GroupResource().String())
		default:
			details := status.Status().Details
			forbidden = append(forbidden, strings.TrimSuffix(details.Kind+"."+details.Group, "."))
		}
	}
	if len(forbidden) > 0 {
		s.Errorf("%s: no permission to list %s", prefix, strings.Join(forbidden, ", "))
	}
}

func allCurrent(nodes []*tree.Node) bool {
	for _, node := range nodes {
		if node.Health.Status != readiness.Current || !allCurrent(node.Owned) || slices.ContainsFunc(node.References, isNotCurrent) {
			return false
		}
	}
	return true
}

// isNotCurrent reports whether a target is missing, or exists and is not Current.
func isNotCurrent(ref tree.Reference) bool {
	return ref.IsBroken() || ref.Err == nil && ref.Target.Health.Status != readiness.Current
}

// paint returns a function to color a status, or nil if the output is not colored.
func (o *treeOptions) paint() func(readiness.Status, string) string {
	if !terminal.UseColor(o.Out) {
		return nil
	}
	return func(status readiness.Status, text string) string {
		var color string
		switch status {
		case readiness.Current:
			color = "32"
		case readiness.Failed:
			color = "31"
		case "":
			return text
		default:
			color = "33" // yellow: InProgress, Terminating or Unknown
		}
		return "\x1b[" + color + "m" + text + "\x1b[0m"
	}
}
