package get

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/unstructured"
)

// inventoryCommand is the command inventory.
type inventoryCommand struct {
	*command.State
	output                    *print.Flags
	selector                  string
	allNamespaces, controlled bool
	events                    bool
}

func newInventory(s *command.State) *cobra.Command {
	c := &inventoryCommand{State: s, output: print.NewFlags()}
	cmd := &cobra.Command{
		Use:   "inventory",
		Short: "List the objects of all kinds",
		Long: "List the objects of all kinds in a namespace, or all objects of the cluster.\n\n" +
			"Objects that controllers made, such as the pods of a deployment, and events are left out. Objects served by two " +
			"groups are listed once. Kinds that could not be listed are reported at the end, with exit code 1. " +
			"Without permission for a whole cluster, the permitted namespaces are listed.",
		Example: "  anyctl inventory -n shop\n  anyctl inventory -A -l app=web -o yaml --neat",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	c.output.AddFlags(fs)
	fs.StringVarP(&c.selector, "selector", "l", "", "Selector (label query) to filter on")
	fs.BoolVarP(&c.allNamespaces, "all-namespaces", "A", false, "List the objects of all namespaces, and cluster-scoped objects")
	fs.BoolVar(&c.controlled, "made-by-controllers", false, "Also list the objects that controllers made")
	fs.BoolVar(&c.events, "events", false, "Also list events")
	return cmd
}

func (c *inventoryCommand) run(ctx context.Context) error {
	if err := c.output.Validate(); err != nil {
		return err
	}
	client, err := c.Client(ctx)
	if err != nil {
		return err
	}
	opts := &inventory.ListOptions{
		Select:        func(r *discovery.Resource) bool { return c.events || r.GVK.Kind != "Event" },
		LabelSelector: c.selector,
		Metadata:      c.output.IsTable() && c.output.Where == "" && c.output.SortBy == "",
	}
	if !c.allNamespaces {
		namespace, _, err := c.Connection.Namespace(ctx)
		if err != nil {
			return err
		}
		opts.Namespaces = []string{namespace}
	}
	found := 0
	var incomplete *inventory.IncompleteError
	objects := func(yield func(inventory.Item[unstructured.Object], error) bool) {
		for item, err := range inventory.List[unstructured.Object](ctx, client, opts) {
			if errors.As(err, &incomplete) {
				return
			}
			if err == nil && !c.controlled && isGenerated(item.Object) {
				continue
			}
			found++
			if !yield(item, err) {
				return
			}
		}
	}
	if c.output.IsTable() {
		err = c.printTable(objects)
	} else {
		err = c.output.Objects(c.Out, func(yield func(*unstructured.Object, error) bool) {
			for item, err := range objects {
				if !yield(item.Object, err) {
					return
				}
			}
		})
	}
	if err == nil && incomplete != nil {
		return c.report(incomplete)
	}
	return err
}

// isGenerated reports whether a controller made an object. Events are selected by their own flag.
func isGenerated(obj *unstructured.Object) bool {
	return obj.GetKind() != "Event" && inventory.MadeByController(obj)
}

var inventoryColumns = []metav1.TableColumnDefinition{{Name: "Object", Type: "string"}, {Name: "Age", Type: "string"}}

// printTable prints the objects ordered by resource, namespace and name.
func (c *inventoryCommand) printTable(objects iter.Seq2[inventory.Item[unstructured.Object], error]) error {
	type sortable struct {
		name string
		row  *dynamic.TableRow
	}
	var all []sortable
	for item, err := range objects {
		if err != nil {
			return err
		}
		name := print.Name(item.Object)
		age := duration.HumanDuration(time.Since(item.Object.GetCreationTimestamp().Time))
		row := &dynamic.TableRow{Columns: inventoryColumns, Cells: []any{name, age}, Object: item.Object}
		all = append(all, sortable{item.Resource.APIResource().GVR.GroupResource().String(), row})
	}
	if len(all) == 0 {
		c.Errorf("No resources found")
		return nil
	}
	slices.SortStableFunc(all, func(a, b sortable) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.row.Object.GetNamespace(), b.row.Object.GetNamespace()),
			strings.Compare(a.row.Object.GetName(), b.row.Object.GetName()))
	})
	return c.output.Rows(c.Out, &print.TableOptions{WithNamespace: c.allNamespaces}, func(yield func(*dynamic.TableRow, error) bool) {
		for _, s := range all {
			if !yield(s.row, nil) {
				return
			}
		}
	})
}

// report prints what could not be listed. Resources that the user may not list at all share a line.
func (c *inventoryCommand) report(incomplete *inventory.IncompleteError) error {
	var denied []string
	for _, err := range incomplete.Resources {
		if apierrors.IsForbidden(err) && len(err.Namespaces) == 0 && err.Resource != "" {
			denied = append(denied, err.GroupResource().String())
			continue
		}
		c.Errorf("error: %v", err)
	}
	if len(denied) > 0 {
		c.Errorf("error: you may not list %s", strings.Join(denied, ", "))
	}
	return &exit.Error{Code: 1}
}
