package inspect

import (
	"cmp"
	"context"
	"fmt"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/fieldowner"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/unstructured"
)

// ownersOptions are the options of the command who.
type ownersOptions struct {
	*command.State

	output    *print.Flags
	referrers bool
	owned     bool
}

func ownersCommand(s *command.State) *cobra.Command {
	o := &ownersOptions{State: s, output: print.NewFlags()}
	cmd := &cobra.Command{
		Use:   "who (TYPE/NAME | TYPE NAME) [FIELD | --referrers]",
		Short: "Show which manager owns a field of an object, or which objects refer to it",
		Long: "Show which field managers own a field, or all fields, of an object: by which operation, when, and through which subresource.\n\n" +
			"FIELD is a path such as spec.replicas or spec.template.spec.containers[name=web].image.\n\n" +
			"With --referrers, show the objects that refer to an object by a field or a selector: workloads to ConfigMaps, Secrets, " +
			"volume claims and service accounts, services to pods, routes to services, bindings to roles, autoscalers to what they scale. " +
			"-o prints the kind, name and UID of each, with its relation and field.",
		Example: "  anyctl who deploy/web spec.replicas\n  anyctl who deploy/web 'spec.template.spec.containers[name=web].image'\n" +
			"  anyctl who deploy/web\n  anyctl who secret/password --referrers",
		RunE: o.run,
	}
	cmd.Flags().BoolVar(&o.referrers, "referrers", false, "Show the objects that refer to the object")
	cmd.Flags().BoolVar(&o.owned, "owned", false, "With --referrers, also show the objects of all kinds that the object owns")
	o.output.AddObjectFlags(cmd.Flags())
	return cmd
}

func (o *ownersOptions) run(cmd *cobra.Command, args []string) error {
	names := 1
	if len(args) > 0 && !strings.Contains(args[0], "/") {
		names = 2
	}
	switch {
	case len(args) < names || len(args) > names+1:
		return command.UsageError(cmd, "an object and at most one field are required: who TYPE/NAME [FIELD]")
	case o.referrers && len(args) > names:
		return command.UsageError(cmd, "--referrers takes no field")
	case !o.referrers && (o.owned || !o.output.IsDefault()):
		return command.UsageError(cmd, "-o and --owned are for --referrers")
	}
	targets, err := (&resource.Finder{Connection: o.Connection}).Targets(cmd.Context(), args[:names])
	if err != nil {
		return err
	}
	if len(targets) != 1 {
		return command.UsageError(cmd, "who takes one object, not %d", len(targets))
	}
	if o.referrers {
		return o.showReferrers(cmd.Context(), targets[0])
	}
	return printOwners(cmd.Context(), o.State, targets[0], args[names:])
}

// printOwners prints the managers of a field, or of all fields for no field.
func printOwners(ctx context.Context, s *command.State, target resource.Target, fields []string) error {
	obj, err := target.Resource.Get(ctx, target.Name, nil)
	if err != nil {
		return err
	}
	var path []string
	if len(fields) > 0 {
		if path, err = unstructured.ParsePath(fields[0]); err != nil {
			return fmt.Errorf("field %q: %w", fields[0], err)
		}
	}
	owners, err := fieldowner.Owners(obj, path)
	if err != nil {
		return err
	}
	if len(owners) == 0 {
		if len(path) == 0 {
			return fmt.Errorf("who %s: metadata.managedFields is empty", print.Name(obj))
		}
		return fmt.Errorf("who %s: no manager owns %s", print.Name(obj), fields[0])
	}
	return writeOwners(s, owners)
}

// writeOwners writes a table of fields and their owners.
func writeOwners(s *command.State, owners []fieldowner.Owner) error {
	sort.SliceStable(owners, func(i, j int) bool {
		return cmp.Or(strings.Compare(owners[i].Field, owners[j].Field), strings.Compare(owners[i].Manager, owners[j].Manager)) < 0
	})
	w := tabwriter.NewWriter(s.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "FIELD\tMANAGER\tOPERATION\tSUBRESOURCE\tAGE\tTIME")
	for _, owner := range owners {
		age := "<unknown>"
		at := "<unknown>"
		if !owner.Time.IsZero() {
			age = duration.HumanDuration(time.Since(owner.Time))
			at = metav1.NewTime(owner.Time).UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", owner.Field, owner.Manager, owner.Operation, cmp.Or(owner.Subresource, "-"), age, at)
	}
	return w.Flush()
}
