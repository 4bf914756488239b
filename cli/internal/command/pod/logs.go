package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/stream"
)

const (
	// logTimeout is the default of --pod-running-timeout for logs.
	logTimeout = 20 * time.Second
	// selectorTail is the default number of lines of each log with a selector.
	selectorTail = 10
)

// logOptions are the options of the command logs.
type logOptions struct {
	*command.State

	stream.LogOptions
	since                                 time.Duration
	sinceTime                             string
	tail                                  int64
	allContainers, allPods, prefix        bool
	ignoreErrors, tailSet, namedContainer bool
	maxRequests                           int
	timeout                               time.Duration
}

func logsCommand(s *command.State) *cobra.Command {
	o := &logOptions{State: s, tail: -1, maxRequests: 5}
	cmd := &cobra.Command{
		Use:   "logs [-f] [-p] (POD | TYPE/NAME | -l SELECTOR) [-c CONTAINER]",
		Short: "Print the logs of containers",
		Long: "Print the log of a container, or of several containers and pods.\n\n" +
			"With --follow and several pods, those that come later are added and those that go are left out. " +
			"A follower survives lost connections and repeats no line.",
		Example: "  anyctl logs web-0\n  anyctl logs -f deploy/web\n  anyctl logs -f -l app=web --prefix --all-containers\n" +
			"  anyctl logs deploy/web --all-pods --since=1h",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.tailSet = cmd.Flags().Changed("tail")
			o.namedContainer = cmd.Flags().Changed("container")
			if err := o.validate(cmd, args); err != nil {
				return err
			}
			return interrupted(cmd.Context(), o.run(cmd.Context(), args))
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *logOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&o.allPods, "all-pods", false, "Get logs from all pods of a service or workload. Sets prefix to true")
	fs.BoolVar(&o.allContainers, "all-containers", false, "Get all containers' logs in the pods")
	fs.BoolVarP(&o.Follow, "follow", "f", false, "Continue with new lines")
	fs.BoolVar(&o.Timestamps, "timestamps", false, "Include timestamps on each line in the log output")
	fs.Int64Var(&o.LimitBytes, "limit-bytes", 0, "Maximum bytes of each log to return; 0 means no limit")
	fs.BoolVarP(&o.Previous, "previous", "p", false, "Print the logs of the previous instance of the container, if it exists")
	fs.Int64Var(&o.tail, "tail", o.tail, "Lines of recent log to display; -1 means all, the default with a selector is 10")
	fs.BoolVar(&o.ignoreErrors, "ignore-errors", false, "Report errors of logs and continue")
	fs.StringVar(&o.sinceTime, "since-time", "", "Only return logs after a specific date (RFC3339)")
	fs.DurationVar(&o.since, "since", 0, "Only return logs newer than a relative duration like 5s, 2m, or 3h")
	fs.StringVarP(&o.Container, "container", "c", "", "Print the logs of this container")
	fs.BoolVar(&o.InsecureSkipTLSVerifyBackend, "insecure-skip-tls-verify-backend", false,
		"Read from kubelets whose certificates cannot be verified. In theory, an attacker could provide invalid log content")
	fs.StringVarP(&o.Selector, "selector", "l", "", "Selector (label query) of the pods")
	fs.IntVar(&o.maxRequests, "max-log-requests", o.maxRequests, "Maximum number of logs to follow at the same time")
	fs.BoolVar(&o.prefix, "prefix", false, "Prefix each line with the log's source (pod name and container name)")
	addTimeoutFlag(cmd, &o.timeout, logTimeout)
}

// validate rejects conflicting arguments and flags, and completes the options.
func (o *logOptions) validate(cmd *cobra.Command, args []string) error {
	const usage = "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\nPOD or TYPE/NAME is a required argument for the logs command"
	switch {
	case len(args) == 0 && o.Selector == "", len(args) > 2:
		return command.UsageError(cmd, usage)
	case len(args) == 1 && o.Selector != "":
		return command.UsageError(cmd, "only a selector (-l) or a POD name is allowed")
	case len(args) == 2 && o.namedContainer:
		return errors.New("only one of -c or an inline [CONTAINER] arg is allowed")
	case len(args) == 2:
		o.Container = args[1]
	}
	if o.sinceTime != "" {
		since, err := time.Parse(time.RFC3339, o.sinceTime)
		if err != nil {
			return err
		}
		o.SinceTime = since
	}
	o.SinceSeconds = int64(o.since.Round(time.Second).Seconds())
	switch {
	case o.sinceTime != "" && o.since != 0:
		return errors.New("at most one of `sinceTime` or `sinceSeconds` may be specified")
	case o.allContainers && o.Container != "":
		return fmt.Errorf("--all-containers=true should not be specified with container name %s", o.Container)
	case o.LimitBytes < 0:
		return errors.New("--limit-bytes must be greater than 0")
	case o.SinceSeconds < 0:
		return errors.New("--since must be greater than 0")
	case o.tail < -1:
		return errors.New("--tail must be greater than or equal to -1")
	}
	if o.since > 0 && o.SinceSeconds == 0 {
		o.SinceSeconds = 1
	}
	o.setTail()
	o.prefix = o.prefix || o.allPods
	return nil
}

func (o *logOptions) setTail() {
	tail := o.tail
	if o.Selector != "" && !o.tailSet {
		tail = selectorTail
	}
	if tail >= 0 {
		o.TailLines = &tail
	}
}

func (o *logOptions) run(ctx context.Context, args []string) error {
	if o.Follow {
		timed, cancel, err := o.Connection.WithRequestTimeout(ctx)
		if err != nil {
			return err
		}
		defer cancel()
		ctx = timed
	}
	if o.Selector != "" {
		pods, err := o.Connection.Handle(ctx, "pods")
		if err != nil {
			return err
		}
		if err := o.checkPods(ctx, pods, o.Selector); err != nil {
			return err
		}
		return o.printLines(ctx, pods)
	}
	f, err := findPod(ctx, o.State, args[0], o.timeout, "get the logs from", compareForLogs)
	if err != nil {
		if namespace, _, nsErr := o.Connection.Namespace(ctx); nsErr == nil && apierrors.IsNotFound(err) {
			err = fmt.Errorf("error from server (NotFound): %s in namespace %q", command.ServerMessage(err), namespace)
		}
		return err
	}
	if o.allPods && f.count > 1 {
		if err := o.checkPods(ctx, f.pods, f.selector); err != nil {
			return err
		}
		o.Name = f.object.GetName()
		return o.printLines(ctx, f.resource)
	}
	if f.count > 1 {
		o.Errorf("Found %d pods, using pod/%s", f.count, f.pod.GetName())
	}
	if o.allContainers {
		if err := o.checkStreams(o.streamsOf(f.pod)); err != nil {
			return err
		}
		o.Name = f.pod.GetName()
		return o.printLines(ctx, f.pods)
	}
	if o.Container, err = chooseContainer(f.pod, o.Container, o.Errorf); err != nil {
		return err
	}
	return o.printLog(ctx, f)
}

// printLog copies the log of a container to the output. With ignoreErrors, an error is printed and not returned.
func (o *logOptions) printLog(ctx context.Context, f *found) error {
	err := o.copyLog(ctx, f)
	if err != nil && ctx.Err() == nil && o.ignoreErrors {
		_ = o.Printf("error: %s\n", command.ServerMessage(err))
		return nil
	}
	return err
}

func (o *logOptions) copyLog(ctx context.Context, f *found) error {
	log, err := stream.Logs(ctx, f.pods, f.pod.GetName(), &o.LogOptions)
	if err != nil {
		return err
	}
	defer log.Close()
	out := printable.Unwrap(o.Out) // keeps the colors of the log
	if o.prefix {
		out = &prefixWriter{out: out, prefix: o.newPainter().prefix(f.pod.GetName(), o.Container), atStart: true}
	}
	_, err = io.Copy(out, log)
	return err
}
