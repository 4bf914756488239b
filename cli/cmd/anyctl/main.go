// Command anyctl is a program like kubectl, built from the packages of this module.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/commands"
	"github.com/anykind/anykind/cli/flags"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	root := &cobra.Command{
		Use:   "anyctl",
		Short: "anyctl controls any Kubernetes cluster through discovery",
		Long: "anyctl controls any Kubernetes cluster through discovery.\n\n" +
			"Commands and flags are kubectl's. Left out are kustomize (-k runs your kustomize or kubectl) and apply without --server-side: " +
			"docs/CLI.md has the list with reasons.",
	}
	program, err := commands.New(root, flags.NewConnection(), args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return program.Run(context.Background())
}
