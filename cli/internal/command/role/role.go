// Package role implements the command role: the smallest roles for a command line.
package role

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/rbac"
)

// options are the options of role.
type options struct {
	*command.State

	output             *print.Flags
	name               string
	allNames, clusters bool
	program            bool
}

// Commands returns the package's command.
func Commands(s *command.State) []*cobra.Command {
	o := &options{State: s, output: print.NewFlags()}
	cmd := &cobra.Command{
		Use:   "role [--name NAME] [--program] -- COMMAND [args...]",
		Short: "Run a command and print the smallest roles for it",
		Long: "Run a command line of anyctl, record its requests, and print a ClusterRole and Roles that permit these requests and nothing else. " +
			"The command has its effects: add --dry-run=server for none. Its output is written to the standard error stream.\n\n" +
			"With --program the command is any program that reads KUBECONFIG. Its requests pass a proxy on the loopback interface, with the " +
			"user's credential. The roles are printed when the program ends, also after Ctrl-C.",
		Example: "  anyctl role -- get pods -n shop\n  anyctl role --name deployer -- apply -f deploy/ --dry-run=server\n" +
			"  anyctl role --all-names -- rollout restart deploy/web -n shop | anyctl apply -f -\n" +
			"  anyctl role --program --name operator -- ./operator --verbose",
		DisableFlagsInUseLine: true,
		RunE:                  o.run,
	}
	fs := cmd.Flags()
	o.output.Output = "yaml"
	o.output.AddObjectFlags(fs)
	fs.StringVar(&o.name, "name", "anyctl", "The name of the roles")
	fs.BoolVar(&o.allNames, "all-names", false, "Permit objects of all names, for later runs with other objects")
	fs.BoolVar(&o.program, "program", false, "Run a program, with a kubeconfig that leads its requests through a proxy")
	fs.BoolVar(&o.clusters, "cluster", false, "Print a ClusterRole alone, for all namespaces")
	return []*cobra.Command{cmd}
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || cmd.ArgsLenAtDash() != 0 {
		return command.UsageError(cmd, "a command is required after --: role -- get pods")
	}
	if args[0] == cmd.Name() && !o.program {
		return errors.New("role cannot record itself")
	}
	printer, err := o.output.Printer(o.Out)
	if err != nil {
		return err
	}
	opts := &rbac.RecorderOptions{}
	if o.allNames {
		opts.MaxNames = -1
	}
	if o.clusters {
		opts.MaxNamespaces = -1
	}
	recorder := rbac.NewRecorder(opts)
	failed := o.record(cmd, recorder, args)
	roles := recorder.Roles(o.name)
	if len(roles) == 0 && failed == nil {
		o.Errorf("No roles are needed: the command sent no requests, or only requests that every user may send.")
	}
	for _, role := range roles {
		if err := printer.Object(role); err != nil {
			return errors.Join(failed, err)
		}
	}
	if failed != nil && len(roles) > 0 {
		o.Errorf("Warning: the command failed, so that the roles may lack permissions for requests behind the error.")
	}
	return failed
}

// record runs a command line with the recorder. Its output is written to Err.
func (o *options) record(cmd *cobra.Command, recorder *rbac.Recorder, args []string) error {
	onAttempt := o.Connection.OnAttempt
	o.Connection.OnAttempt = func(ctx context.Context, attempt transport.Attempt) {
		recorder.OnAttempt(ctx, attempt)
		onAttempt(ctx, attempt)
	}
	out := o.Out
	o.Out = o.Err
	defer func() { o.Out = out }()
	if o.program {
		return o.recordProgram(cmd.Context(), args)
	}
	root := cmd.Root()
	root.SetOut(o.Err)
	root.SetArgs(slices.Clone(args))
	return root.ExecuteContext(cmd.Context())
}
