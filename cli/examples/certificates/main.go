// Command certificates is kubectl get for a single custom kind, with kubectl's flags and output formats. Set resource to the
// plural and group of your own kind.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/print"
)

const resource = "certificates.cert-manager.io"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	connection := flags.NewConnection()
	selection := &flags.Selection{}
	output := print.NewFlags()
	command := &cobra.Command{
		Use: "certificates", Short: "List certificates", Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return list(cmd.Context(), connection, selection, output) },
	}
	connection.AddFlags(command.Flags())
	selection.AddFlags(command.Flags())
	output.AddFlags(command.Flags())
	errOut := print.Terminal(os.Stderr) // escapes control sequences in server texts
	connection.OnWarning = func(_ context.Context, text string) { fmt.Fprintln(errOut, "Warning:", text) }
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(errOut, "error:", strings.ReplaceAll(err.Error(), "\n", "\n  "))
		os.Exit(1)
	}
}

func list(ctx context.Context, connection *flags.Connection, selection *flags.Selection, output *print.Flags) error {
	handle, err := connection.Handle(ctx, resource)
	if err != nil {
		return err
	}
	defer connection.Close()
	if selection.AllNamespaces {
		handle = handle.AllNamespaces()
	}
	if output.IsTable() {
		rows := handle.Tables(output.Include(selection.AllNamespaces)).List(ctx, selection.ListOptions())
		return output.Rows(os.Stdout, &print.TableOptions{WithNamespace: selection.AllNamespaces}, rows)
	}
	return output.Objects(os.Stdout, handle.List(ctx, selection.ListOptions()))
}
