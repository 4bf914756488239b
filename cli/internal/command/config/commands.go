// Package config implements the command config for reading and changing kubeconfig files.
package config

import (
	"errors"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// Commands returns the package's command.
func Commands(s *command.State) []*cobra.Command {
	cmd := &cobra.Command{
		Use:   "config SUBCOMMAND",
		Short: "Modify kubeconfig files",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	if !s.IsNamed(cmd.Name()) {
		return []*cobra.Command{cmd}
	}
	cmd.AddCommand(
		newGetContexts(s),
		newNameList(s, "get-clusters", "Display clusters defined in the kubeconfig", func(f *kubeconfig.File) []string { return slices.Sorted(maps.Keys(f.Clusters)) }),
		newNameList(s, "get-users", "Display users defined in the kubeconfig", func(f *kubeconfig.File) []string { return slices.Sorted(maps.Keys(f.Users)) }),
		newCurrentContext(s), newConfigView(s),
	)
	for _, change := range []*cobra.Command{
		newUseContext(s), newSetContext(s), newSetCluster(s), newSetCredentials(s), newSet(s), newUnset(s),
		newRenameContext(s), newDeleteContext(s), newDeleteCluster(s), newDeleteUser(s),
	} {
		cmd.AddCommand(withOutput(s, change))
	}
	return []*cobra.Command{cmd}
}

// withOutput adds -o to a command that changes kubeconfigs: the result is printed as config view prints it.
func withOutput(s *command.State, cmd *cobra.Command) *cobra.Command {
	output := print.NewFlags()
	output.AddObjectFlags(cmd.Flags())
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if output.IsDefault() {
			return run(cmd, args)
		}
		if _, err := output.Printer(s.Out); err != nil {
			return err
		}
		out := s.Out
		s.Out = s.Err
		err := run(cmd, args)
		if s.Out = out; err != nil {
			return err
		}
		return (&configView{merge: true}).print(s, output)
	}
	return cmd
}

// loadFile returns the merged kubeconfig. A missing file is an empty kubeconfig, even with --kubeconfig, as in kubectl config.
func loadFile(s *command.State) (*kubeconfig.File, error) {
	file, err := transport.LoadKubeconfig(s.Connection.Kubeconfig)
	if err != nil && errors.Is(err, os.ErrNotExist) {
		return &kubeconfig.File{}, nil
	}
	return file, err
}
