package kuberc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/unstructured"
)

// Commands returns the package's command.
func Commands(s *command.State) []*cobra.Command {
	cmd := &cobra.Command{
		Use:     "kuberc SUBCOMMAND",
		Short:   "Manage kuberc configuration files",
		Long:    "Manage the preferences file of kubectl, by default ~/.kube/kuberc, whose aliases and default flags hold for anyctl, too.",
		Example: "  anyctl kuberc view\n  anyctl kuberc set --section defaults --command get --option output=wide",
		RunE:    command.RunHelp,
	}
	if s.IsNamed(cmd.Name()) {
		cmd.AddCommand(viewCommand(s), setCommand(s))
	}
	return []*cobra.Command{cmd}
}

func viewCommand(s *command.State) *cobra.Command {
	output := print.NewFlags()
	output.Output = "yaml"
	cmd := &cobra.Command{
		Use:                   "view",
		Short:                 "Display the current kuberc configuration",
		Example:               "  anyctl kuberc view\n  anyctl kuberc view --output json",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, explicit, err := commandPath(cmd)
			if err != nil {
				return err
			}
			return view(s, output, file, explicit)
		},
	}
	output.AddObjectFlags(cmd.Flags())
	return cmd
}

// commandPath returns the path of the file for view and set.
func commandPath(cmd *cobra.Command) (file string, explicit bool, err error) {
	file, explicit, err = path(cmd.Flag("kuberc").Value.String())
	if err == nil && file == "" {
		err = errors.New("KUBERC is disabled via KUBERC=off environment variable")
	}
	return file, explicit, err
}

func view(s *command.State, output *print.Flags, file string, explicit bool) error {
	data, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && explicit:
		return fmt.Errorf("kuberc file not found at %s", file)
	case errors.Is(err, fs.ErrNotExist):
		return offerDefault(s, file)
	case err != nil:
		return fmt.Errorf("error reading kuberc file: %w", err)
	}
	preference := Preference{}
	if err := yaml.Unmarshal(data, &preference); err != nil {
		return fmt.Errorf("error parsing kuberc file: %w", err)
	}
	if preference.Aliases == nil {
		preference.Aliases = []Alias{}
	}
	if preference.Defaults == nil {
		preference.Defaults = []Defaults{}
	}
	printer, err := output.Printer(s.Out)
	if err != nil {
		return err
	}
	obj, err := unstructured.From(&preference)
	if err != nil {
		return err
	}
	return printer.Object(obj)
}

// offerDefault writes a file with recommended defaults if the user agrees.
func offerDefault(s *command.State, file string) error {
	err := s.Printf("kuberc file not found at %s\nWould you like to generate a default kuberc file with recommended options? (y/N): ", file)
	if err != nil {
		return err
	}
	answer := ""
	if _, err := fmt.Fscanln(s.In, &answer); err != nil || !strings.EqualFold(answer, "y") {
		return nil //nolint:nilerr // no answer means no
	}
	return save(s, file, &Preference{Kind: kind, APIVersion: v1beta1, Defaults: []Defaults{
		{Command: "apply", Options: []Option{{Name: "server-side", Default: "true"}}},
		{Command: "delete", Options: []Option{{Name: "interactive", Default: "true"}}},
	}})
}
