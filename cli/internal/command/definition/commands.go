// Package definition implements crd.
package definition

import (
	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
)

// Commands returns the package's commands.
func Commands(s *command.State) []*cobra.Command {
	cmd := &cobra.Command{
		Use:   "crd",
		Short: "Maintain CustomResourceDefinitions",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(migrateCommand(s), s.CopyCommand("check -f FILE", "Compare new definitions with live objects", "crd-check"))
	return []*cobra.Command{cmd}
}
