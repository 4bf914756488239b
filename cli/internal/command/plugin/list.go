// Package plugin runs, lists and completes kubectl's plugins: executable files on PATH with the prefix kubectl-.
package plugin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
)

// Commands returns the package's commands.
func Commands(s *command.State) []*cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin [flags]",
		Short: "Provides utilities for interacting with plugins",
		Long: "Provides utilities for interacting with plugins.\n\nA plugin is an executable file on PATH. The file kubectl-NAME is run by anyctl NAME, " +
			"and kubectl-create-NAME by anyctl create NAME, with all further arguments. A plugin never replaces a command of anyctl. " +
			"Relative entries of PATH are not searched.",
		Example:               "  anyctl plugin list\n  anyctl plugin list --name-only",
		DisableFlagsInUseLine: true,
		RunE:                  command.RunHelp,
	}
	list := &listCommand{State: s}
	listCmd := &cobra.Command{
		Use:   "list",
		Short: "List all visible plugin executables on a user's PATH",
		Long:  "List all files on PATH with the prefix kubectl-, and why a file is not run or should not be run.",
		RunE:  func(cmd *cobra.Command, _ []string) error { return list.run(cmd.Root()) },
	}
	listCmd.Flags().BoolVar(&list.nameOnly, "name-only", false, "If true, display only the binary name of each plugin, rather than its full path")
	cmd.AddCommand(listCmd)
	return []*cobra.Command{cmd}
}

type listCommand struct {
	*command.State

	nameOnly bool
	warnings int
	// seen maps a file name to the first path.
	seen map[string]string
}

func (c *listCommand) run(root *cobra.Command) error {
	c.seen = map[string]string{}
	paths := pluginFiles(func(folder string, err error) {
		c.Errorf("Unable to read directory %q from your PATH: %v. Skipping...", folder, err)
	})
	var errs []error
	if len(paths) == 0 {
		errs = append(errs, errors.New("error: unable to find any kubectl plugins in your PATH"))
	} else if err := c.Printf("The following compatible plugins are available:\n\n"); err != nil {
		return err
	}
	for _, path := range paths {
		name := path
		if c.nameOnly {
			name = filepath.Base(path)
		}
		if err := c.Printf("%s\n", name); err != nil {
			return err
		}
		c.check(root, path)
	}
	switch {
	case c.warnings == 1:
		errs = append(errs, errors.New("error: one plugin warning was found"))
	case c.warnings > 1:
		errs = append(errs, fmt.Errorf("error: %d plugin warnings were found", c.warnings))
	}
	return errors.Join(errs...)
}

// pluginFiles returns the files with the prefix of a plugin, in the order of PATH. onSkipped is called for an unreadable folder.
func pluginFiles(onSkipped func(folder string, err error)) []string {
	var paths []string
	for _, folder := range folders() {
		entries, err := os.ReadDir(folder)
		if err != nil {
			onSkipped(folder, err)
			continue
		}
		for _, entry := range entries {
			if !entry.IsDir() && strings.HasPrefix(entry.Name(), prefix) {
				paths = append(paths, filepath.Join(folder, entry.Name()))
			}
		}
	}
	return paths
}

// check warns about a file that is not run, or that another user can replace.
func (c *listCommand) check(root *cobra.Command, path string) {
	name := filepath.Base(path)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		c.warnf("error: unable to identify %s as an executable file: %v", path, err)
	case !isExecutable(path, info):
		c.warnf("warning: %s identified as a kubectl plugin, but it is not executable", path)
	case isWorldWritable(path, info):
		c.warnf("warning: %s can be replaced by every user of this machine", path)
	}
	if first, ok := c.seen[name]; ok {
		c.warnf("warning: %s is overshadowed by a similarly named plugin: %s", path, first)
	} else {
		c.seen[name] = path
	}
	words := strings.Split(name, "-")[1:]
	if cmd, _, err := root.Find(words); err == nil && cmd != root {
		c.warnf("warning: %s overwrites existing command: %q", name, cmd.CommandPath())
	}
}

func (c *listCommand) warnf(format string, args ...any) {
	c.warnings++
	c.Errorf("  - "+format, args...)
}
