// Command get prints objects of any kind in every format of kubectl get: get deploy,svc -l app=web -o wide
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/cli/resource"
)

func main() {
	connection := flags.NewConnection()
	output := print.NewFlags()
	finder := &resource.Finder{Connection: connection, AllowTypes: true}
	cmd := &cobra.Command{Use: "get TYPE[,TYPE] [NAME...]", SilenceErrors: true, SilenceUsage: true}
	connection.AddFlags(cmd.Flags())
	output.AddFlags(cmd.Flags())
	finder.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		targets, err := finder.Targets(cmd.Context(), args)
		if err != nil {
			return err
		}
		return get(cmd.Context(), targets, &finder.Selection, output)
	}
	os.Exit(exit.Report(os.Stderr, cmd.ExecuteContext(context.Background())))
}

// get prints a table for each target, a single object, or all objects as a list.
func get(ctx context.Context, targets resource.Targets, selection *flags.Selection, output *print.Flags) error {
	list := selection.ListOptions()
	if !output.IsTable() && len(targets) == 1 && targets[0].Name != "" {
		obj, err := targets[0].Resource.Get(ctx, targets[0].Name, nil)
		if err != nil {
			return err
		}
		return output.Object(os.Stdout, obj)
	} else if !output.IsTable() {
		return output.Objects(os.Stdout, targets.Objects(ctx, list))
	}
	for i, target := range targets {
		kind := target.Resource.APIResource()
		opts := &print.TableOptions{
			Kind: kind.GVK.GroupKind(), WithKind: len(targets) > 1, WithSeparator: i > 0,
			WithNamespace: selection.AllNamespaces && kind.Namespaced,
		}
		rows := target.Rows(ctx, output.Include(opts.WithNamespace), list)
		if err := output.Rows(os.Stdout, opts, rows); err != nil {
			return err
		}
	}
	return nil
}
