package pod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/unstructured"
)

// attachLogTimeout bounds the logs in front of an attached session.
const attachLogTimeout = 5 * time.Second

type runOptions struct {
	command.Creation
	command.Overrides
	podOptions

	session        session
	attach, remove bool
	expose         bool
	detachKeys     string
}

func runCommand(s *command.State) *cobra.Command {
	o := &runOptions{session: session{State: s}}
	cmd := &cobra.Command{
		Use:   "run NAME --image=image [--env=\"key=value\"] [--port=port] [--dry-run=server|client] [--overrides=inline-json] [--command] -- [COMMAND] [args...]",
		Short: "Run a particular image on the cluster",
		Long:  "Create a pod with one container, and attach to it with -i or --attach. Then --rm deletes the pod at the end, and the exit code is the container's unless the pod restarts it.",
		Example: "  anyctl run web --image=nginx\n  anyctl run -it shell --rm --image=busybox --restart=Never\n" +
			"  anyctl run web --image=nginx --command -- nginx -g 'daemon off;'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("attach") && o.session.stdin {
				o.attach = true
			}
			return interrupted(cmd.Context(), o.run(cmd, args))
		},
	}
	fs := cmd.Flags()
	o.Creation.AddFlags(fs)
	o.Overrides.AddFlags(fs)
	o.podOptions.addFlags(fs)
	_ = cmd.MarkFlagRequired("image") // cannot fail: the flag exists
	o.addFlags(fs)
	addTimeoutFlag(cmd, &o.session.timeout, streamTimeout)
	return cmd
}

func (o *runOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.remove, "rm", false, "If true, delete the pod after it exits.  Only valid when attaching to the container, e.g. with '--attach' or with '-i/--stdin'.")
	fs.BoolVarP(&o.session.stdin, "stdin", "i", false, "Keep stdin open on the container in the pod, even if nothing is attached.")
	fs.BoolVarP(&o.session.tty, "tty", "t", false, "Allocate a TTY for the container in the pod.")
	fs.BoolVarP(&o.session.quiet, "quiet", "q", false, "If true, suppress prompt messages.")
	fs.BoolVar(&o.attach, "attach", false, "If true, wait for the Pod to start running, and then attach to it. Default false, unless '-i/--stdin' is set, in which case the default is true. With '--restart=Never' the exit code of the container process is returned.")
	fs.BoolVar(&o.expose, "expose", false, "If true, create a ClusterIP service associated with the pod.  Requires `--port`.")
	fs.StringVar(&o.detachKeys, "detach-keys", defaultDetachKeys, "Override the key sequence for detaching a container.")
}

func (o *runOptions) validate(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || cmd.ArgsLenAtDash() == 0:
		return command.UsageError(cmd, "NAME is required for run")
	case o.image == "":
		return errors.New("--image is required")
	case !isImage(o.image):
		return fmt.Errorf("invalid image name %q: invalid reference format", o.image)
	case o.session.tty && !o.session.stdin:
		return errors.New("-i/--stdin is required for containers with -t/--tty=true")
	case o.expose && o.port == "":
		return errors.New("--port must be set when exposing a service")
	}
	if _, err := strconv.Atoi(cmp.Or(o.port, "0")); err != nil {
		return errors.New("--port must be a number")
	}
	switch o.restart {
	case "Always", "OnFailure", "Never":
	case "":
		o.restart = "Always"
		if o.session.stdin {
			o.restart = "OnFailure"
		}
	default:
		return fmt.Errorf("invalid restart policy: %s, valid values are: Always, OnFailure, Never", o.restart)
	}
	switch {
	case o.remove && !o.attach:
		return errors.New("--rm should only be used for attached containers")
	case o.attach && o.Write.DryRun != flags.DryRunNone:
		return errors.New("--dry-run=[server|client] can't be used with attached containers options (--attach, --stdin, or --tty)")
	}
	switch o.pullPolicy {
	case "", "Always", "IfNotPresent", "Never":
		return nil
	}
	return fmt.Errorf("invalid image pull policy: %s, valid values are: Always, IfNotPresent, Never", o.pullPolicy)
}

func (o *runOptions) run(cmd *cobra.Command, args []string) (err error) {
	s := o.session.State
	if err := o.Complete(s); err != nil {
		return err
	}
	if err := o.validate(cmd, args); err != nil {
		return err
	}
	keys, err := parseKeys(o.detachKeys)
	if err != nil {
		return fmt.Errorf("could not bind detach keys: %w", err)
	}
	o.stdin = o.session.stdin
	o.tty = o.session.tty
	pod, err := o.pod(args[0], args[1:])
	if err != nil {
		return err
	}
	if pod, err = o.Apply(cmd.Context(), s, pod); err != nil {
		return err
	}
	ctx := cmd.Context()
	created, pods, err := o.Create(ctx, s, pod)
	if err != nil {
		return err
	}
	all := []createdObject{{pods, created}}
	var errs []error
	if o.expose {
		if service, err := o.createService(ctx, args[0]); err == nil {
			all = append(all, service)
		} else {
			errs = append(errs, err)
		}
	}
	if o.attach {
		if o.remove {
			defer func() { err = errors.Join(err, o.removeAll(context.WithoutCancel(ctx), all)) }()
		}
		return o.attachTo(cmd, pods.Namespace(created.GetNamespace()), created.GetName(), keys)
	}
	for _, c := range all {
		errs = append(errs, o.Output.Object(c.object, "created"))
	}
	return errors.Join(errs...)
}

// createdObject is an object for --rm. The resource is nil for --dry-run=client.
type createdObject struct {
	resource *dynamic.Resource
	object   *unstructured.Object
}

// createService creates the service of --expose.
func (o *runOptions) createService(ctx context.Context, name string) (createdObject, error) {
	service, err := o.service(name)
	if err != nil {
		return createdObject{}, err
	}
	created, services, err := o.Create(ctx, o.session.State, service)
	if err != nil {
		return createdObject{}, err
	}
	return createdObject{services, created}, nil
}

// removeAll deletes the created objects.
func (o *runOptions) removeAll(ctx context.Context, all []createdObject) error {
	var errs []error
	for _, one := range all {
		namespace := one.object.GetNamespace()
		name := one.object.GetName()
		_, err := one.resource.Namespace(namespace).Delete(ctx, name, nil)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			errs = append(errs, err)
		case !o.session.quiet:
			kind := strings.ToLower(one.object.GetKind())
			errs = append(errs, o.session.Printf("%s %q deleted from %s namespace\n", kind, name, namespace))
		}
	}
	return errors.Join(errs...)
}

// attachTo waits until the pod is ready or has ended, attaches to it or prints its log, and returns the container's exit code.
func (o *runOptions) attachTo(cmd *cobra.Command, pods *dynamic.Resource, name string, keys []byte) error {
	ctx := cmd.Context()
	pod, err := o.wait(ctx, pods, name, "Ready", func(pod *unstructured.Object) bool {
		status, _, _ := unstructured.Get[string](pod, "status", "conditions", "[type=Ready]", "status")
		return hasEnded(pod) || phase(pod) == "Running" && status == "True"
	})
	if err != nil {
		return err
	}
	if hasEnded(pod) {
		err = o.printLog(ctx, pods, pod)
	} else {
		err = o.attachRunning(cmd, pods, pod, keys)
	}
	if err != nil || o.leaveStdinOpen || o.restart == "Always" {
		return err
	}
	if pod, err = o.wait(ctx, pods, name, "completed", func(pod *unstructured.Object) bool {
		return phase(pod) == "Succeeded" || phase(pod) == "Failed" && o.restart == "Never"
	}); err != nil {
		return err
	}
	return o.exitCode(pod)
}

func hasEnded(pod *unstructured.Object) bool {
	return phase(pod) == "Succeeded" || phase(pod) == "Failed"
}

// wait waits for --pod-running-timeout.
func (o *runOptions) wait(ctx context.Context, pods *dynamic.Resource, name, text string, holds func(*unstructured.Object) bool) (*unstructured.Object, error) {
	waitCtx, cancel := context.WithTimeout(ctx, o.session.timeout)
	defer cancel()
	pod, err := pods.Wait(waitCtx, name, dynamic.Matches(text, func(pod *unstructured.Object) (bool, error) { return holds(pod), nil }))
	if err != nil && ctx.Err() == nil && waitCtx.Err() != nil {
		return nil, fmt.Errorf("timed out waiting for the condition (--pod-running-timeout): %w", err)
	}
	return pod, err
}

// attachRunning prints the log so far, and attaches. If that fails, it prints the log.
func (o *runOptions) attachRunning(cmd *cobra.Command, pods *dynamic.Resource, pod *unstructured.Object, keys []byte) error {
	ctx := cmd.Context()
	logCtx, cancel := context.WithTimeout(ctx, attachLogTimeout)
	if err := o.printLog(logCtx, pods, pod); err != nil {
		o.session.Errorf("warning: couldn't fetch pre-attach logs: %v", err)
	}
	cancel()
	err := runAttach(cmd, &o.session, "pods/"+pod.GetName(), keys)
	var status *exit.Error
	if err == nil || errors.As(err, &status) {
		return nil // the exit code is read from the pod
	}
	o.session.Errorf("warning: couldn't attach to pod/%s, falling back to streaming logs: %v", pod.GetName(), err)
	return o.printLog(ctx, pods, pod)
}

// printLog prints the log of the container.
func (o *runOptions) printLog(ctx context.Context, pods *dynamic.Resource, pod *unstructured.Object) error {
	log, err := stream.Logs(ctx, pods, pod.GetName(), &stream.LogOptions{Container: nested.String(nested.List(pod.Object, "spec", "containers")[0], "name")})
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = io.Copy(printable.Unwrap(o.session.Out), log)
	return err
}

// exitCode returns an error with the exit code of a failed container.
func (o *runOptions) exitCode(pod *unstructured.Object) error {
	if phase(pod) == "Succeeded" {
		return nil
	}
	name := pod.GetNamespace() + "/" + pod.GetName()
	statuses := nested.List(pod.Object, "status", "containerStatuses")
	if len(statuses) == 0 {
		return fmt.Errorf("pod %s failed with unknown exit code", name)
	}
	terminated := nested.Map(statuses[0], "state", "terminated")
	code := int(nested.Int(terminated, "exitCode"))
	if code == 0 {
		return fmt.Errorf("pod %s failed with unknown exit code", name)
	}
	text := fmt.Sprintf("pod %s terminated (%s)\n%s", name, nested.String(terminated, "reason"), nested.String(terminated, "message"))
	o.session.Errorf("%s", strings.TrimSuffix(text, "\n"))
	return &exit.Error{Code: code}
}
