package get

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
)

func newCompletion(s *command.State) *cobra.Command {
	scripts := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": func(root *cobra.Command, w io.Writer) error { return root.GenPowerShellCompletionWithDesc(w) },
	}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Output shell completion code for the specified shell (bash, zsh, fish, or powershell)",
		Long:      "Output shell completion code for bash, zsh, fish or powershell. In bash: source <(anyctl completion bash)",
		ValidArgs: []string{"bash", "fish", "powershell", "zsh"},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return command.UsageError(cmd, "Shell not specified.")
			case len(args) > 1:
				return command.UsageError(cmd, "Too many arguments. Expected only the shell type.")
			case scripts[args[0]] == nil:
				return command.UsageError(cmd, "Unsupported shell type %q.", args[0])
			}
			if err := scripts[args[0]](cmd.Root(), s.Out); err != nil {
				return fmt.Errorf("write the completion script: %w", err)
			}
			return nil
		},
	}
}
