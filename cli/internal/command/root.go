// Package command has the shared parts of anyctl's commands: streams, the connection, the resolution of arguments to objects, and
// kubectl's error texts and exit codes.
package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/flagset"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

// Streams are the standard streams of a command. Out and Err are writers of package printable: they escape control sequences on a
// terminal.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// State is shared by all commands and passed to each constructor.
type State struct {
	Streams
	Connection *flags.Connection
	// Args is the command line. With nil, all commands are built.
	Args []string
	// Aliased are the words of commands with an alias on the command line.
	Aliased []string
}

// IsNamed reports whether the command line contains name. Subcommands of commands without their name on the command line are not
// built: their flags are much of the memory of a short command line.
func (s *State) IsNamed(name string) bool {
	return s.Args == nil || slices.Contains(s.Args, name) || slices.Contains(s.Aliased, name)
}

// Client returns the client opened with the connection flags.
func (s *State) Client(ctx context.Context) (*dynamic.Client, error) { return s.Connection.Client(ctx) }

// Printf writes to the standard output. On a terminal, a line break in an argument becomes a space.
func (s *State) Printf(format string, args ...any) error {
	if printable.IsTerminal(s.Out) {
		args = singleLines(args)
	}
	_, err := fmt.Fprintf(s.Out, format, args...)
	return err
}

// Errorf writes a line to the standard error stream. A line break in an argument becomes a space.
func (s *State) Errorf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.Err, format+"\n", singleLines(args)...)
}

// singleLines applies [printable.Line] to strings, errors and Stringers, because their texts may come from a server.
func singleLines(args []any) []any {
	args = slices.Clone(args)
	for i, arg := range args {
		switch arg.(type) {
		case string, error, fmt.Stringer:
			args[i] = printable.Line(fmt.Sprint(arg))
		}
	}
	return args
}

// Root adds commands and kubectl's persistent flags to a root command. The command does not print errors: see [exit.Report].
func Root(s *State, root *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.CompletionOptions.DisableDefaultCmd = true
	if root.Run == nil && root.RunE == nil {
		root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		root.Args = unknownCommand
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(flagError)
	s.Connection.AddFlags(root.PersistentFlags())
	r := &requestFlags{}
	r.addFlags(root.PersistentFlags())
	onWarning := s.Connection.OnWarning
	s.Connection.OnWarning = func(ctx context.Context, text string) {
		r.warnings.Add(1)
		s.Errorf("Warning: %s", text)
		if onWarning != nil {
			onWarning(ctx, text)
		}
	}
	onAttempt := s.Connection.OnAttempt
	s.Connection.OnAttempt = func(ctx context.Context, attempt transport.Attempt) {
		r.log(s, &attempt)
		if onAttempt != nil {
			onAttempt(ctx, attempt)
		}
	}
	root.PersistentPostRunE = after(root, r.warningsError)
	root.AddCommand(commands...)
	if err := s.Connection.RegisterCompletions(root); err != nil {
		s.Errorf("error: %v", err)
	}
	completeArguments(s, commands)
	if s.Args == nil || s.IsNamed(cobra.ShellCompRequestCmd) || s.IsNamed(cobra.ShellCompNoDescRequestCmd) {
		completeFlagValues(s, commands)
	}
	return root
}

// after returns a hook that calls root's own hook and then check.
func after(root *cobra.Command, check func() error) func(*cobra.Command, []string) error {
	own := root.PersistentPostRunE
	return func(cmd *cobra.Command, args []string) error {
		if own != nil {
			if err := own(cmd, args); err != nil {
				return err
			}
		}
		return check()
	}
}

// completeArguments sets ValidArgsFunction of commands without argument completion.
func completeArguments(s *State, commands []*cobra.Command) {
	for _, cmd := range commands {
		if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
			switch cmd.Name() {
			case "get", "describe", "wait", "tree", "who", "view-last-applied":
				cmd.ValidArgsFunction = s.Connection.CompleteTargets
			case "delete":
				cmd.ValidArgsFunction = s.Connection.CompleteTargetsFor("delete")
			case "edit", "patch", "label", "annotate", "env", "resources", "selector", "serviceaccount",
				"expose", "edit-last-applied":
				cmd.ValidArgsFunction = s.Connection.CompleteTargetsFor("patch")
			case "scale", "autoscale":
				cmd.ValidArgsFunction = s.Connection.CompleteTargetsWith(isScalable)
			case "restart", "undo", "status", "history":
				cmd.ValidArgsFunction = s.Connection.CompleteTargetsWith(isOneOf("apps", "deployments", "daemonsets", "statefulsets"))
			case "pause", "resume":
				cmd.ValidArgsFunction = s.Connection.CompleteTargetsWith(isOneOf("apps", "deployments"))
			case "subject":
				cmd.ValidArgsFunction = s.Connection.CompleteTargetsWith(isOneOf("rbac.authorization.k8s.io", "rolebindings", "clusterrolebindings"))
			case "cp":
				cmd.ValidArgsFunction = s.Connection.CompleteCopy
			case "image":
				cmd.ValidArgsFunction = s.Connection.CompleteContainerValues
			case "logs", "exec", "attach", "port-forward", "debug":
				cmd.ValidArgsFunction = s.Connection.CompletePods
			case "drain", "cordon", "uncordon", "taint":
				cmd.ValidArgsFunction = s.Connection.CompleteNodes
			case "migrate":
				cmd.ValidArgsFunction = s.Connection.CompleteDefinitions
			}
		}
		completeArguments(s, cmd.Commands())
	}
}

func isScalable(r *discovery.Resource) bool {
	_, found := r.Subresource("scale")
	return found
}

// isOneOf returns a function that accepts resources of a group.
func isOneOf(group string, resources ...string) func(*discovery.Resource) bool {
	return func(r *discovery.Resource) bool {
		return r.GVR.Group == group && slices.Contains(resources, r.GVR.Resource)
	}
}

// completeFlagValues completes the values of flags that several commands have.
func completeFlagValues(s *State, commands []*cobra.Command) {
	functions := map[string]cobra.CompletionFunc{
		"dry-run":   cobra.FixedCompletions([]string{"client", "none", "server"}, cobra.ShellCompDirectiveNoFileComp),
		"validate":  cobra.FixedCompletions([]string{"ignore", "strict", "warn"}, cobra.ShellCompDirectiveNoFileComp),
		"container": s.Connection.CompleteContainers,
		"where":     s.Connection.CompleteWhere,
	}
	for _, cmd := range commands {
		for flag, function := range functions {
			if cmd.Flags().Lookup(flag) == nil {
				continue
			}
			if err := cmd.RegisterFlagCompletionFunc(flag, function); err != nil {
				s.Errorf("error: %v", err)
			}
		}
		completeFlagValues(s, cmd.Commands())
	}
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	help := ""
	if similar := similarCommands(cmd, args[0]); len(similar) > 0 {
		help = "\n\nDid you mean this?\n\t" + strings.Join(similar, "\n\t") + "\n"
	}
	return exit.WithHelp(fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath()), help)
}

// similarCommands returns commands with a similar name and the same first letter. cp is no suggestion for top.
func similarCommands(cmd *cobra.Command, typed string) []string {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	return slices.DeleteFunc(cmd.SuggestionsFor(typed), func(name string) bool {
		isSynonym := slices.ContainsFunc(cmd.Commands(), func(of *cobra.Command) bool { return of.Name() == name && slices.Contains(of.SuggestFor, typed) })
		return !isSynonym && typed[:min(1, len(typed))] != name[:1]
	})
}

// flagError reports an unknown flag. An unknown command before the flag is reported in its place.
func flagError(cmd *cobra.Command, err error) error {
	if !cmd.HasParent() {
		if unknown := unknownCommand(cmd, cmd.Flags().Args()); unknown != nil {
			return unknown
		}
	}
	return exit.WithHelp(err, fmt.Sprintf("\nSee '%s --help' for usage.", cmd.CommandPath()))
}

// requestFlags are the flags -v and --warnings-as-errors.
type requestFlags struct {
	verbosity        int
	warningsAsErrors bool
	warnings         atomic.Int64
}

// logVerbosity is the lowest -v with a log line per request, as in kubectl.
const logVerbosity = 6

func (r *requestFlags) addFlags(to *pflag.FlagSet) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.IntVarP(&r.verbosity, "v", "v", 0, "number for the log level verbosity: from 6 on, each request is logged, without its query")
	fs.BoolVar(&r.warningsAsErrors, "warnings-as-errors", false, "Treat warnings received from the server as errors and exit with a non-zero exit code")
	flagset.AddMissing(to, fs)
}

func (r *requestFlags) log(s *State, attempt *transport.Attempt) {
	if r.verbosity < logVerbosity {
		return
	}
	result := "no response"
	switch {
	case attempt.StatusCode != 0:
		result = fmt.Sprintf("%d %s", attempt.StatusCode, http.StatusText(attempt.StatusCode))
	case attempt.Err != nil:
		result = attempt.Err.Error()
	}
	s.Errorf("%s %s %s in %v", attempt.Method, attempt.URL, result, attempt.Duration.Round(time.Millisecond))
}

func (r *requestFlags) warningsError() error {
	switch count := r.warnings.Load(); {
	case !r.warningsAsErrors || count == 0:
		return nil
	case count == 1:
		return fmt.Errorf("1 warning received")
	default:
		return fmt.Errorf("%d warnings received", count)
	}
}
