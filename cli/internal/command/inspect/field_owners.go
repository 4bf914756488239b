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

func ownersCommand(s *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "who (TYPE/NAME | TYPE NAME) [FIELD]",
		Short: "Show which manager owns a field of an object",
		Long: "Show which field managers own a field, or all fields, of an object: by which operation, when, and through which subresource.\n\n" +
			"FIELD is a path such as spec.replicas or spec.template.spec.containers[name=web].image.",
		Example: "  anyctl who deploy/web spec.replicas\n  anyctl who deploy/web 'spec.template.spec.containers[name=web].image'\n  anyctl who deploy/web",
		RunE: func(cmd *cobra.Command, args []string) error {
			return printOwners(cmd.Context(), cmd, s, args)
		},
	}
}

func printOwners(ctx context.Context, cmd *cobra.Command, s *command.State, args []string) error {
	names := 1
	if len(args) > 0 && !strings.Contains(args[0], "/") {
		names = 2
	}
	if len(args) < names || len(args) > names+1 {
		return command.UsageError(cmd, "an object and at most one field are required: who TYPE/NAME [FIELD]")
	}
	targets, err := (&resource.Finder{Connection: s.Connection}).Targets(ctx, args[:names])
	if err != nil {
		return err
	}
	if len(targets) != 1 {
		return command.UsageError(cmd, "who takes one object, not %d", len(targets))
	}
	obj, err := targets[0].Resource.Get(ctx, targets[0].Name, nil)
	if err != nil {
		return err
	}
	var path []string
	if len(args) > names {
		if path, err = unstructured.ParsePath(args[names]); err != nil {
			return fmt.Errorf("field %q: %w", args[names], err)
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
		return fmt.Errorf("who %s: no manager owns %s", print.Name(obj), args[names])
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
