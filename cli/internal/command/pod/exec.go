package pod

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

func execCommand(s *command.State) *cobra.Command {
	o := &session{State: s}
	files := &flags.Files{Reader: manifest.Reader{In: s.In}}
	cmd := &cobra.Command{
		Use:   "exec (POD | TYPE/NAME) [-c CONTAINER] [flags] -- COMMAND [args...]",
		Short: "Execute a command in a container",
		Long:  "Execute a command in a container of a pod, or of one of the pods of a service or workload. The exit code is the command's.",
		Example: "  anyctl exec web-0 -- date\n  anyctl exec -it deploy/web -- sh\n" +
			"  anyctl exec web-0 -c app -- ls -t /usr",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runExec(cmd, o, files, args) // an interrupt kills kubectl exec
		},
	}
	o.addFlags(cmd)
	cmd.Flags().StringSliceVarP(&files.Paths, "filename", "f", nil, "to use to exec into the resource")
	return cmd
}

func runExec(cmd *cobra.Command, o *session, files *flags.Files, args []string) error {
	dash := cmd.ArgsLenAtDash()
	switch {
	case !files.IsEmpty() && dash == 0 && len(args) > 0: // all arguments are the command
	case dash < 0 && len(args) > 1:
		return command.UsageError(cmd, "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead")
	case dash == 0 || len(args) == 0:
		return errors.New("pod, type/name or --filename must be specified")
	case dash < 0 || len(args) == dash:
		return errors.New("you must specify at least one command for the container")
	case dash > 1:
		return command.UsageError(cmd, "exec takes one pod, not %d", dash)
	}
	ctx := cmd.Context()
	f, err := o.find(ctx, files, args[:dash])
	if err != nil {
		return err
	}
	if err := rejectEnded(f.pod, "exec into"); err != nil {
		return err
	}
	if o.container, err = chooseContainer(f.pod, o.container, o.noticef); err != nil {
		return err
	}
	err = o.streams(ctx, nil, func(opts *stream.ExecOptions) error {
		opts.Command = args[dash:]
		return o.exec(ctx, f, opts)
	})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return o.exitError(err)
}

// find returns the pod of the argument or of the object in a file.
func (o *session) find(ctx context.Context, files *flags.Files, args []string) (*found, error) {
	const purpose = "attach to"
	if files.IsEmpty() {
		return findPod(ctx, o.State, args[0], o.timeout, purpose, compareForStreams)
	}
	targets, err := (&resource.Finder{Connection: o.Connection, Files: *files}).Targets(ctx, args)
	if err != nil {
		return nil, err
	}
	if len(targets) != 1 {
		return nil, fmt.Errorf("exec: --filename has %d objects, exec needs exactly one", len(targets))
	}
	return findPodOf(ctx, o.State, targets[0].Resource, targets[0].Name, o.timeout, purpose, compareForStreams)
}

func (o *session) exec(ctx context.Context, f *found, opts *stream.ExecOptions) error {
	return stream.Exec(ctx, f.pods, f.pod.GetName(), opts)
}

// rejectEnded returns an error for a pod in phase Succeeded or Failed.
func rejectEnded(pod *unstructured.Object, operation string) error {
	if p := phase(pod); p == "Succeeded" || p == "Failed" {
		return fmt.Errorf("cannot %s a container in a completed pod; current phase is %s", operation, p)
	}
	return nil
}
