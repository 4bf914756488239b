// Command shopctl has get, apply and wait of anyctl, and suspend, its own command for objects of any kind.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cli/commands"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/cli/resource"
)

func main() {
	connection := flags.NewConnection()
	root := &cobra.Command{Use: "shopctl", Short: "shopctl controls shops"}
	root.AddCommand(suspend(connection))
	program, err := commands.New(root, connection, os.Args[1:], "get", "apply", "wait")
	if err != nil {
		log.Fatal(err)
	}
	os.Exit(program.Run(context.Background()))
}

// suspend returns a command to set spec.suspend, a field of CronJob, for instance.
func suspend(connection *flags.Connection) *cobra.Command {
	finder := &resource.Finder{Connection: connection}
	write := &flags.Write{}
	cmd := &cobra.Command{Use: "suspend (TYPE NAME... | TYPE/NAME... | TYPE -l LABELS | -f FILE)", Short: "Suspend objects of any kind"}
	finder.AddFlags(cmd.Flags())
	write.AddDryRunFlag(cmd.Flags())
	write.AddFieldManagerFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := write.Complete(func(format string, args ...any) { cmd.PrintErrf(format+"\n", args...) }); err != nil {
			return err
		}
		var errs []error
		for info, err := range finder.Objects(cmd.Context(), args, true) {
			if err == nil && write.DryRun != flags.DryRunClient {
				patch := []byte(`{"spec":{"suspend":true}}`)
				_, err = info.Resource.WithDefaults(write.Defaults()).Patch(cmd.Context(), info.Name, types.MergePatchType, patch, nil)
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s suspended%s\n", print.Name(info.Object), write.DryRun.Suffix())
		}
		return errors.Join(errs...)
	}
	return cmd
}
