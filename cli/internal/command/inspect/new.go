package inspect

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
)

func newCommand(s *command.State) *cobra.Command {
	return &cobra.Command{
		Use:   "new TYPE [NAME]",
		Short: "Print a new object of any kind as YAML, to be edited",
		Long: "Print a new object of any kind as YAML, from the schema that its API server publishes: required fields with values that " +
			"the schema accepts, and as comments their descriptions, further fields with their defaults, and rules. Nothing is created.",
		Example: "  anyctl new deployment web > web.yaml\n  anyctl new certificates.cert-manager.io web | anyctl create -f - --dry-run=server",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return command.UsageError(cmd, "must specify a resource type, and optionally a name")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			gvk, kind, err := s.Connection.KindSchema(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			name := "example"
			if len(args) == 2 {
				name = args[1]
			}
			if _, err := io.WriteString(s.Out, kind.Skeleton(gvk, name)); err != nil {
				return fmt.Errorf("print %s: %w", gvk.Kind, err)
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return s.Connection.CompleteTargets(cmd, args, typed)
		},
	}
}
