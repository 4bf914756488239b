package pod

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/unstructured"
)

func execCommand(s *command.State) *cobra.Command {
	o := &session{State: s}
	cmd := &cobra.Command{
		Use:   "exec (POD | TYPE/NAME) [-c CONTAINER] [flags] -- COMMAND [args...]",
		Short: "Execute a command in a container",
		Long:  "Execute a command in a container of a pod, or of one of the pods of a service or workload. The exit code is the command's.",
		Example: "  anyctl exec web-0 -- date\n  anyctl exec -it deploy/web -- sh\n" +
			"  anyctl exec web-0 -c app -- ls -t /usr",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return interrupted(cmd.Context(), runExec(cmd, o, args))
		},
	}
	o.addFlags(cmd)
	return cmd
}

func runExec(cmd *cobra.Command, o *session, args []string) error {
	dash := cmd.ArgsLenAtDash()
	switch {
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
	f, err := findPod(ctx, o.State, args[0], o.timeout, "attach to", compareForStreams)
	if err != nil {
		return err
	}
	if err := rejectEnded(f.pod, "exec into"); err != nil {
		return err
	}
	if o.container, err = chooseContainer(f.pod, o.container, o.notices()); err != nil {
		return err
	}
	err = o.streams(ctx, nil, func(opts *stream.ExecOptions) error {
		opts.Command = args[dash:]
		return o.exec(ctx, f, opts)
	})
	return o.exitError(err)
}

func (o *session) exec(ctx context.Context, f *found, opts *stream.ExecOptions) error {
	return stream.Exec(ctx, f.pods, f.pod.GetName(), opts)
}

// rejectEnded returns an error for a pod that has ended.
func rejectEnded(pod *unstructured.Object, operation string) error {
	if p := phase(pod); p == "Succeeded" || p == "Failed" {
		return fmt.Errorf("cannot %s a container in a completed pod; current phase is %s", operation, p)
	}
	return nil
}
