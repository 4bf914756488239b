package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/transport"
)

// Root returns the root command of anyctl with kubectl's persistent flags. It does not print errors: see Report.
func Root(s *State, commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:               "anyctl",
		Short:             "anyctl controls any Kubernetes cluster through discovery",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Args:              unknownCommand,
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(flagError)
	s.Connection.AddFlags(root.PersistentFlags())
	r := &requestFlags{}
	r.addFlags(root.PersistentFlags())
	s.Connection.OnWarning = func(_ context.Context, text string) {
		r.warnings.Add(1)
		s.Errorf("Warning: %s", text)
	}
	s.Connection.OnAttempt = func(_ context.Context, attempt transport.Attempt) { r.log(s, &attempt) }
	root.PersistentPostRunE = func(*cobra.Command, []string) error { return r.warningsError() }
	root.AddCommand(commands...)
	if err := s.Connection.RegisterCompletions(root); err != nil {
		s.Errorf("error: %v", err)
	}
	completeArguments(s, commands)
	return root
}

// completeArguments sets ValidArgsFunction of commands without argument completion.
func completeArguments(s *State, commands []*cobra.Command) {
	for _, cmd := range commands {
		if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
			switch cmd.Name() {
			case "get", "describe", "delete", "edit", "patch", "set", "label", "annotate", "scale", "wait", "tree", "who",
				"status", "restart", "history", "undo", "pause", "resume":
				cmd.ValidArgsFunction = s.Connection.CompleteTargets
			case "logs", "exec", "attach", "cp", "port-forward":
				cmd.ValidArgsFunction = s.Connection.CompletePods
			case "drain", "cordon", "uncordon":
				cmd.ValidArgsFunction = s.Connection.CompleteNodes
			}
		}
		completeArguments(s, cmd.Commands())
	}
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	help := ""
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		help = "\n\nDid you mean this?\n\t" + strings.Join(similar, "\n\t") + "\n"
	}
	return WithHelp(fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath()), help)
}

func flagError(cmd *cobra.Command, err error) error {
	return WithHelp(err, fmt.Sprintf("\nSee '%s --help' for usage.", cmd.CommandPath()))
}
