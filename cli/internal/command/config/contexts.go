package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/transport/kubeconfig/edit"
)

func newGetContexts(s *command.State) *cobra.Command {
	var output string
	var noHeaders bool
	cmd := &cobra.Command{
		Use:               "get-contexts [NAME...]",
		Short:             "Describe one or many contexts",
		ValidArgsFunction: s.Connection.CompleteContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			if output != "" && output != "name" {
				return fmt.Errorf("--output %v is not available in anyctl config get-contexts; resetting to default output format", output)
			}
			file, err := loadFile(s)
			if err != nil {
				return err
			}
			names, errs := chosenContexts(file, args)
			return errors.Join(append(errs, printContexts(s, file, names, output == "name", noHeaders))...)
		},
	}
	cmd.Flags().BoolVar(&noHeaders, "no-headers", false, "When using the default or custom-column output format, don't print headers (default print headers).")
	cmd.Flags().StringVarP(&output, "output", "o", "", "Output format. One of: (name).")
	return cmd
}

func chosenContexts(file *kubeconfig.File, args []string) (names []string, errs []error) {
	if len(args) == 0 {
		return slices.Sorted(maps.Keys(file.Contexts)), nil
	}
	for _, name := range args {
		if _, ok := file.Contexts[name]; ok {
			names = append(names, name)
		} else {
			errs = append(errs, fmt.Errorf("context %v not found", name))
		}
	}
	slices.Sort(names)
	return names, errs
}

func printContexts(s *command.State, file *kubeconfig.File, names []string, nameOnly, noHeaders bool) error {
	if nameOnly {
		for _, name := range names {
			if err := s.Printf("%s\n", name); err != nil {
				return err
			}
		}
		return nil
	}
	header := []string{"CURRENT", "NAME", "CLUSTER", "AUTHINFO", "NAMESPACE"}
	if noHeaders {
		header = nil
	}
	columns := print.NewColumns(s.Out, header)
	for _, name := range names {
		mark := " "
		if name == file.CurrentContext {
			mark = "*"
		}
		kubeContext := file.Contexts[name]
		if err := columns.Row(mark, name, kubeContext.Cluster, kubeContext.User, kubeContext.Namespace); err != nil {
			return err
		}
	}
	return columns.Flush()
}

func newNameList(s *command.State, use, short string, names func(*kubeconfig.File) []string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short,
		RunE: func(*cobra.Command, []string) error {
			file, err := loadFile(s)
			if err != nil {
				return err
			}
			if err := s.Printf("NAME\n"); err != nil {
				return err
			}
			for _, name := range names(file) {
				if err := s.Printf("%s\n", name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func newCurrentContext(s *command.State) *cobra.Command {
	return &cobra.Command{
		Use: "current-context", Short: "Display the current-context",
		RunE: func(*cobra.Command, []string) error {
			file, err := loadFile(s)
			if err != nil {
				return err
			}
			if file.CurrentContext == "" {
				return errors.New("current-context is not set")
			}
			return s.Printf("%s\n", file.CurrentContext)
		},
	}
}

func newUseContext(s *command.State) *cobra.Command {
	return &cobra.Command{
		Use: "use-context CONTEXT_NAME", Aliases: []string{"use"}, Short: "Set the current-context in a kubeconfig file",
		ValidArgsFunction: s.Connection.CompleteContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.UsageError(cmd, "Unexpected args: %v", args)
			}
			file, err := loadFile(s)
			if err != nil {
				return err
			}
			if _, ok := file.Contexts[args[0]]; !ok {
				return fmt.Errorf("no context exists with the name: %q", args[0])
			}
			if err := setCurrentContext(cmd.Context(), s, args[0]); err != nil {
				return err
			}
			return s.Printf("Switched to context %q.\n", args[0])
		},
	}
}

func newSetContext(s *command.State) *cobra.Command {
	var current bool
	cmd := &cobra.Command{
		Use: "set-context [NAME | --current] [--cluster=NAME] [--user=NAME] [--namespace=NAME]", Short: "Set a context entry in kubeconfig",
		ValidArgsFunction: s.Connection.CompleteContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return command.UsageError(cmd, "Unexpected args: %v", args)
			}
			name := strings.Join(args, "")
			switch {
			case name == "" && !current:
				return errors.New("you must specify a non-empty context name or --current")
			case name != "" && current:
				return errors.New("you cannot specify both a context name and --current")
			}
			return setContext(cmd, s, name)
		},
	}
	cmd.Flags().BoolVar(&current, "current", false, "Modify the current context")
	return cmd
}

// setContext sets the fields of a context to the changed connection flags. name "" is the current context.
func setContext(cmd *cobra.Command, s *command.State, name string) error {
	file, err := loadFile(s)
	if err != nil {
		return err
	}
	if name == "" {
		if name = file.CurrentContext; name == "" {
			return errors.New("no current context is set")
		}
	}
	entry, exists := file.Contexts[name]
	for flag, field := range map[string]*string{"cluster": &entry.Cluster, "user": &entry.User, "namespace": &entry.Namespace} {
		if f := cmd.Flags().Lookup(flag); f != nil && f.Changed {
			*field = f.Value.String()
		}
	}
	path, err := entryFile(s, entry.Origin)
	if err != nil {
		return err
	}
	if err := putContext(cmd.Context(), path, name, entry); err != nil {
		return err
	}
	if exists {
		return s.Printf("Context %q modified.\n", name)
	}
	return s.Printf("Context %q created.\n", name)
}

func putContext(ctx context.Context, path, name string, entry kubeconfig.Context) error {
	return edit.File(ctx, path, func(document *edit.Document) error {
		return document.Put(&kubeconfig.File{Contexts: map[string]kubeconfig.Context{name: entry}})
	})
}
