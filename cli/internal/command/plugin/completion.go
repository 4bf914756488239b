package plugin

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
)

// AddCompletions adds a command for each plugin to root while a shell completes a command line: the first word, or the arguments of a
// plugin. A program with the prefix kubectl_complete- completes the arguments, as in kubectl.
func AddCompletions(s *command.State, root *cobra.Command) {
	if len(s.Args) < 2 || s.Args[0] != cobra.ShellCompRequestCmd && s.Args[0] != cobra.ShellCompNoDescRequestCmd {
		return
	}
	typed := s.Args[1:]
	isNamed := func(cmd *cobra.Command) bool { return cmd.Name() == typed[0] }
	if isFlag(typed[0]) || len(typed) > 1 && slices.ContainsFunc(root.Commands(), isNamed) {
		return
	}
	if len(typed) > 1 {
		root.ResetFlags() // a plugin has none of root's flags
	}
	for _, path := range pluginFiles(func(string, error) {}) { // completion skips unreadable folders
		addCompletion(root, strings.Split(filepath.Base(path), "-")[1:])
	}
}

// addCompletion adds the missing commands of a plugin's words.
func addCompletion(root *cobra.Command, words []string) {
	words = slices.Clone(words)
	for i, word := range words {
		words[i] = strings.ReplaceAll(word, "_", "-")
	}
	parent := root
	for _, word := range words {
		i := slices.IndexFunc(parent.Commands(), func(cmd *cobra.Command) bool { return cmd.Name() == word })
		if i >= 0 {
			parent = parent.Commands()[i]
			continue
		}
		cmd := &cobra.Command{
			Use: word, Short: "The command " + word + " is a plugin installed by the user",
			DisableFlagParsing: true, ValidArgsFunction: complete, Run: func(*cobra.Command, []string) {},
		}
		parent.AddCommand(cmd)
		parent = cmd
	}
}

// complete runs the program that completes a plugin's arguments. A last line with a colon and a number is a directive for the shell.
func complete(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	words := strings.Fields(cmd.CommandPath())[1:]
	path, ok := lookup(completionPrefix + fileName(words))
	if !ok {
		return nil, cobra.ShellCompDirectiveDefault
	}
	output, err := exec.CommandContext(cmd.Context(), path, append(slices.Clone(args), typed)...).Output() //nolint:gosec // the user's own program
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var lines []cobra.Completion
	for line := range bytes.Lines(output) {
		if text := strings.TrimRight(string(line), "\r\n"); text != "" {
			lines = append(lines, text)
		}
	}
	if n := len(lines); n > 0 && strings.HasPrefix(lines[n-1], ":") {
		if directive, err := strconv.Atoi(lines[n-1][1:]); err == nil {
			return lines[:n-1], cobra.ShellCompDirective(directive)
		}
	}
	return lines, cobra.ShellCompDirectiveDefault
}
