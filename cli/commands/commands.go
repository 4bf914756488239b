// Package commands has the commands of anyctl, for the root commands of other programs:
//
//	root := &cobra.Command{Use: "shopctl", Short: "shopctl controls shops"}
//	program, err := commands.New(root, flags.NewConnection(), os.Args[1:], "get", "apply", "wait")
//	…
//	os.Exit(program.Run(ctx))
//
// For commands of your own, package resource finds the objects of a command line, package print writes them, and package exit reports
// errors.
package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/admin"
	"github.com/anykind/anykind/cli/internal/command/change"
	"github.com/anykind/anykind/cli/internal/command/cluster"
	"github.com/anykind/anykind/cli/internal/command/config"
	"github.com/anykind/anykind/cli/internal/command/definition"
	"github.com/anykind/anykind/cli/internal/command/get"
	"github.com/anykind/anykind/cli/internal/command/inspect"
	"github.com/anykind/anykind/cli/internal/command/kuberc"
	"github.com/anykind/anykind/cli/internal/command/plans"
	"github.com/anykind/anykind/cli/internal/command/plugin"
	"github.com/anykind/anykind/cli/internal/command/pod"
	"github.com/anykind/anykind/cli/internal/command/role"
	"github.com/anykind/anykind/cli/internal/command/validate"
	"github.com/anykind/anykind/cli/internal/command/workload"
	"github.com/anykind/anykind/cli/internal/printable"
)

// Program is a root command with commands of anyctl.
type Program struct {
	root  *cobra.Command
	state *command.State
	// hasPlugins is set for programs with the command plugin.
	hasPlugins bool
	// preferences are nil for programs without the command kuberc.
	preferences *kuberc.Preferences
}

// group is the commands of a package.
type group struct {
	commands func(*command.State) []*cobra.Command
	// names are the commands that need this group alone. Missing are commands that use the tree of all commands: role runs a command,
	// plugin and kuberc name them, completion completes them.
	names []string
}

var groups = []group{
	{get.Commands, []string{"get", "inventory", "events", "api-resources", "api-versions", "version"}},
	{config.Commands, []string{"config"}},
	{change.Commands, []string{"create", "apply", "delete", "edit", "replace", "patch", "set", "label", "annotate", "scale", "wait", "rollout"}},
	{pod.Commands, []string{"logs", "exec", "attach", "run", "cp", "port-forward", "proxy", "debug"}},
	{inspect.Commands, []string{"describe", "new", "explain", "tree", "who", "status", "auth", "drain", "cordon", "uncordon"}},
	{definition.Commands, []string{"crd"}},
	{plans.Commands, []string{"diff", "plan"}},
	{validate.Commands, []string{"validate"}},
	{cluster.Commands, []string{"cluster-info", "top"}},
	{plugin.Commands, nil},
	{kuberc.Commands, nil},
	{admin.Commands, []string{"taint", "certificate"}},
	{workload.Commands, []string{"expose", "autoscale"}},
	{role.Commands, nil},
}

// build builds the group of the first argument, or all groups. Flags of all commands would take much of the time and memory of a short
// command line.
func build(state *command.State, needsAll bool) (all []*cobra.Command) {
	needed := groups
	if len(state.Args) > 0 && !needsAll {
		if i := slices.IndexFunc(groups, func(g group) bool { return slices.Contains(g.names, state.Args[0]) }); i >= 0 {
			needed = groups[i : i+1]
		}
	}
	for _, group := range needed {
		all = append(all, group.commands(state)...)
	}
	return all
}

// New adds commands of anyctl to root: the named commands, or all without names. The persistent flags of root get kubectl's
// connection flags, -v and --warnings-as-errors, except for flags and shorthands that root has. Errors and warnings are written as
// kubectl does. The name of root is the default of the connection's FieldManager and UserAgent. args is the command line without the program's name. Hooks of the connection, such as OnWarning, are called, too.
func New(root *cobra.Command, connection *flags.Connection, args []string, names ...string) (*Program, error) {
	connection.FieldManager = cmp.Or(connection.FieldManager, root.Name())
	connection.UserAgent = cmp.Or(connection.UserAgent, root.Name())
	state := &command.State{
		Streams:    command.Streams{In: root.InOrStdin(), Out: printable.Writer(root.OutOrStdout()), Err: printable.Writer(root.ErrOrStderr())},
		Connection: connection,
		Args:       args,
	}
	var preferences *kuberc.Preferences
	if len(names) == 0 || slices.Contains(names, "kuberc") {
		preferences = kuberc.Load(state)
		kuberc.AddFlag(root.PersistentFlags())
	}
	all := build(state, len(names) > 0 || preferences.NameCommands())
	chosen := all
	if len(names) > 0 {
		chosen = nil
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(cmd *cobra.Command) bool { return cmd.Name() == name })
		if i < 0 {
			return nil, fmt.Errorf("add commands to %s: anyctl has no command %q", root.Name(), name)
		}
		chosen = append(chosen, all[i])
	}
	rename(chosen, connection, root.Name())
	command.Root(state, root, chosen...)
	hasPlugins := len(names) == 0 || slices.Contains(names, "plugin")
	return &Program{root, state, hasPlugins, preferences}, nil
}

// rename replaces anyctl by the program's name in helps, and adds the default of --field-manager.
func rename(commands []*cobra.Command, connection *flags.Connection, program string) {
	replaced := func(text string) string { return strings.ReplaceAll(text, "anyctl ", program+" ") }
	for _, cmd := range commands {
		cmd.Example = replaced(cmd.Example)
		cmd.Long = replaced(cmd.Long)
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			flag.Usage = replaced(flag.Usage)
			if flag.Name == "field-manager" && flag.DefValue == "" {
				flag.Usage = strings.TrimSuffix(flag.Usage, ".") + " (default " + connection.FieldManager + ")."
			}
		})
		rename(cmd.Commands(), connection, program)
	}
}

// Run executes the command line and returns the exit code of the program. An interrupt ends the command, a second interrupt kills the
// program. kubectl's preferences are applied if the program has the command kuberc. A command line that names no command runs a plugin of kubectl, if the program has the command plugin.
func (p *Program) Run(ctx context.Context) int {
	if p.preferences != nil {
		if err := p.preferences.Apply(p.root); err != nil {
			return exit.Report(p.state.Err, err)
		}
	}
	if p.hasPlugins {
		if found, err := plugin.Run(p.state, p.root); found {
			return exit.Report(p.state.Err, err)
		}
		plugin.AddCompletions(p.state, p.root)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal cancels ctx and restores the default action.
	context.AfterFunc(ctx, stop)
	p.root.SetArgs(p.state.Args)
	err := p.root.ExecuteContext(ctx)
	p.state.Connection.Close()
	err = errors.Join(err, printable.Flush(p.state.Out))
	defer func() { _ = printable.Flush(p.state.Err) }()
	if err != nil && ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
		return exit.Interrupted
	}
	return exit.Report(p.state.Err, err)
}
