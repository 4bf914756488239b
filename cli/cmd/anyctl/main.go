// Command anyctl is a program like kubectl, built from the packages of this module.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/commands"
	"github.com/anykind/anykind/cli/flags"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	delayCollection()
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

// delayCollection delays the first garbage collection from 4 MB of heap to 8 MB, unless the user has set GOGC. Most commands allocate
// less, and a collection takes an eighth of their CPU.
func delayCollection() {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := debug.SetGCPercent(200)
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, percent)
}
