package config

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/transport/kubeconfig/edit"
)

func newDeleteContext(s *command.State) *cobra.Command {
	return &cobra.Command{
		Use: "delete-context NAME", Short: "Delete the specified context from the kubeconfig",
		ValidArgsFunction: s.Connection.CompleteContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.UsageError(cmd, "Unexpected args: %v", args)
			}
			file, err := loadFile(s)
			if err != nil {
				return err
			}
			path, err := defaultFile(s)
			if err != nil {
				return err
			}
			entry, ok := file.Contexts[args[0]]
			if !ok {
				return fmt.Errorf("cannot delete context %s, not in %s", args[0], path)
			}
			if file.CurrentContext == args[0] {
				s.Errorf("warning: this removed your active context, use \"anyctl config use-context\" to select a different one")
			}
			err = edit.File(cmd.Context(), entry.Origin, func(document *edit.Document) error { return document.DeleteContext(args[0]) })
			if err != nil {
				return err
			}
			return s.Printf("deleted context %s from %s\n", args[0], path)
		},
	}
}

func newDeleteCluster(s *command.State) *cobra.Command {
	return &cobra.Command{
		Use: "delete-cluster NAME", Short: "Delete the specified cluster from the kubeconfig",
		ValidArgsFunction: s.Connection.CompleteClusters,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cmd.Help()
			}
			file, err := loadFile(s)
			if err != nil {
				return err
			}
			entry, exists := file.Clusters[args[0]]
			return deleteEntry(cmd.Context(), s, "cluster", args[0], entry.Origin, exists, (*edit.Document).DeleteCluster)
		},
	}
}

func newDeleteUser(s *command.State) *cobra.Command {
	return &cobra.Command{
		Use: "delete-user NAME", Short: "Delete the specified user from the kubeconfig",
		ValidArgsFunction: s.Connection.CompleteUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.UsageError(cmd, "user to delete is required")
			}
			file, err := loadFile(s)
			if err != nil {
				return err
			}
			entry, exists := file.Users[args[0]]
			return deleteEntry(cmd.Context(), s, "user", args[0], entry.Origin, exists, (*edit.Document).DeleteUser)
		},
	}
}

func deleteEntry(ctx context.Context, s *command.State, kind, name, origin string, exists bool, remove func(*edit.Document, string) error) error {
	path, err := defaultFile(s)
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("cannot delete %s %s, not in %s", kind, name, path)
	}
	if err := edit.File(ctx, origin, func(document *edit.Document) error { return remove(document, name) }); err != nil {
		return err
	}
	return s.Printf("deleted %s %s from %s\n", kind, name, path)
}

func newRenameContext(s *command.State) *cobra.Command {
	return &cobra.Command{
		Use: "rename-context CONTEXT_NAME NEW_NAME", Short: "Rename a context from the kubeconfig file",
		Long:              "Rename a context from the kubeconfig file, and the current-context if it is that one.",
		ValidArgsFunction: s.Connection.CompleteContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 2:
				return command.UsageError(cmd, "Unexpected args: %v", args)
			case args[1] == "":
				return errors.New("You must specify a new non-empty context name")
			}
			return renameContext(cmd.Context(), s, args[0], args[1])
		},
	}
}

func renameContext(ctx context.Context, s *command.State, name, newName string) error {
	file, err := loadFile(s)
	if err != nil {
		return err
	}
	path, err := defaultFile(s)
	if err != nil {
		return err
	}
	entry, exists := file.Contexts[name]
	if !exists {
		return fmt.Errorf("cannot rename the context %q, it's not in %s", name, path)
	}
	if _, exists := file.Contexts[newName]; exists {
		return fmt.Errorf("cannot rename the context %q, the context %q already exists in %s", name, newName, path)
	}
	if err := edit.File(ctx, entry.Origin, func(document *edit.Document) error { return document.RenameContext(name, newName) }); err != nil {
		return err
	}
	if file.CurrentContext == name {
		if err := setCurrentContext(ctx, s, newName); err != nil {
			return err
		}
	}
	return s.Printf("Context %q renamed to %q.\n", name, newName)
}
