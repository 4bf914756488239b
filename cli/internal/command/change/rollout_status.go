package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/progress"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

type rolloutStatusOptions struct {
	rolloutOptions

	watch    bool
	revision int64
	timeout  time.Duration
}

func rolloutStatusCommand(s *command.State) *cobra.Command {
	o := &rolloutStatusOptions{}
	cmd := &cobra.Command{
		Use:     "status (TYPE NAME | TYPE/NAME) [flags]",
		Short:   "Show the status of the rollout",
		Long:    "Show the status of the latest rollout until it is done, or once with --watch=false.",
		Example: "  anyctl rollout status deployment/web",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkArgs(args); err != nil {
				return err
			}
			if o.revision < 0 {
				return fmt.Errorf("revision must be a positive integer: %v", o.revision)
			}
			return o.visit(cmd.Context(), s, args, "rolled out", func(t *resource.Info) error { return o.await(cmd.Context(), s, t) })
		},
	}
	o.addFlags(cmd, s)
	fs := cmd.Flags()
	fs.BoolVarP(&o.watch, "watch", "w", true, "Watch the status of the rollout until it's done.")
	fs.Int64Var(&o.revision, "revision", 0, "Pin to a specific revision for showing its status. Defaults to 0 (last revision).")
	fs.DurationVar(&o.timeout, "timeout", 0, "The length of time to wait before ending watch, zero means never. Any other values should contain a corresponding time unit (e.g. 1s, 2m, 3h).")
	return cmd
}

// await prints the status of a rollout until it is done.
func (o *rolloutStatusOptions) await(ctx context.Context, s *command.State, t *resource.Info) error {
	status, err := rolloutStatusOf(t.Object, o.revision)
	if err != nil {
		return err
	}
	waitCtx := ctx
	if o.timeout > 0 {
		var cancel context.CancelFunc
		waitCtx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	lines := newStatusLines(s.Out, t.String())
	defer lines.close()
	for change, err := range t.Resource.Named(t.Name).Follow(waitCtx, nil) {
		if err != nil {
			if ctx.Err() == nil && waitCtx.Err() != nil {
				return errors.New("timed out waiting for the condition")
			}
			return err
		}
		switch change.Type {
		case watch.Added, watch.Modified:
			text, done, err := status(change.Object)
			if err != nil {
				return err
			}
			if err := lines.print(text, done || !o.watch); err != nil || done || !o.watch {
				return err
			}
		case watch.Deleted:
			return errors.New("object has been deleted")
		case dynamic.Synced:
			if !lines.hasPrinted {
				return apierrors.NewNotFound(t.Resource.APIResource().GVR.GroupResource(), t.Name)
			}
		default:
		}
	}
	return context.Cause(waitCtx)
}

// statusLines prints changes of a status: a redrawn line on a terminal, and a line per change elsewhere.
type statusLines struct {
	out        io.Writer
	display    *progress.Display
	key, last  string
	hasPrinted bool
}

func newStatusLines(out io.Writer, key string) *statusLines {
	return &statusLines{out: out, display: progress.New(out), key: key}
}

func (l *statusLines) print(text string, isLast bool) error {
	l.hasPrinted = true
	if l.display.IsTerminal() && !isLast {
		l.display.Update(l.key, "%s", text)
		return nil
	}
	if text == l.last {
		return nil
	}
	l.last = text
	_, err := fmt.Fprintln(l.display.Above(l.out), text)
	return err
}

func (l *statusLines) close() { l.display.Close() }

// rolloutStatus returns the status text for a version of an object, and whether its rollout is done.
type rolloutStatus func(obj *unstructured.Object) (text string, done bool, err error)

// rolloutStatusOf returns the rolloutStatus for the kind of obj.
func rolloutStatusOf(obj *unstructured.Object, revision int64) (rolloutStatus, error) {
	switch {
	case isKind(obj, "Deployment"):
		return func(obj *unstructured.Object) (string, bool, error) {
			if err := checkRevision(obj, revision); err != nil {
				return "", false, err
			}
			return deploymentStatus(obj)
		}, nil
	case isKind(obj, "DaemonSet"):
		return daemonSetStatus, nil
	case isKind(obj, "StatefulSet"):
		return statefulSetStatus, nil
	}
	kind := obj.GroupVersionKind().GroupKind()
	return nil, fmt.Errorf("no status viewer has been implemented for %v (use: wait --for=ready)", kind)
}

func checkRevision(obj *unstructured.Object, revision int64) error {
	if revision == 0 {
		return nil
	}
	text, found := obj.GetAnnotations()[revisionAnnotation]
	if !found {
		text = "0"
	}
	current, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("cannot get the revision of deployment %q: %w", obj.GetName(), err)
	}
	if current != revision {
		return fmt.Errorf("desired revision (%d) is different from the running revision (%d)", revision, current)
	}
	return nil
}

func deploymentStatus(obj *unstructured.Object) (string, bool, error) {
	name := obj.GetName()
	if obj.GetGeneration() > nested.Int(obj.Object, "status", "observedGeneration") {
		return "Waiting for deployment spec update to be observed...", false, nil
	}
	reason, _, _ := unstructured.Get[string](obj, "status", "conditions", "[type=Progressing]", "reason")
	if reason == "ProgressDeadlineExceeded" {
		return "", false, fmt.Errorf("deployment %q exceeded its progress deadline", name)
	}
	replicas, hasReplicas, _ := unstructured.Get[int64](obj, "spec", "replicas")
	updated := nested.Int(obj.Object, "status", "updatedReplicas")
	all := nested.Int(obj.Object, "status", "replicas")
	available := nested.Int(obj.Object, "status", "availableReplicas")
	prefix := fmt.Sprintf("Waiting for deployment %q rollout to finish: ", name)
	switch {
	case hasReplicas && updated < replicas:
		return fmt.Sprintf("%s%d out of %d new replicas have been updated...", prefix, updated, replicas), false, nil
	case all > updated:
		return fmt.Sprintf("%s%d old replicas are pending termination...", prefix, all-updated), false, nil
	case available < updated:
		return fmt.Sprintf("%s%d of %d updated replicas are available...", prefix, available, updated), false, nil
	}
	return fmt.Sprintf("deployment %q successfully rolled out", name), true, nil
}

func requireRollingUpdate(obj *unstructured.Object) error {
	strategy, _, _ := unstructured.Get[string](obj, "spec", "updateStrategy", "type")
	if strategy != "RollingUpdate" {
		return errors.New("rollout status is only available for RollingUpdate strategy type")
	}
	return nil
}

func daemonSetStatus(obj *unstructured.Object) (string, bool, error) {
	if err := requireRollingUpdate(obj); err != nil {
		return "", true, err
	}
	if obj.GetGeneration() > nested.Int(obj.Object, "status", "observedGeneration") {
		return "Waiting for daemon set spec update to be observed...", false, nil
	}
	desired := nested.Int(obj.Object, "status", "desiredNumberScheduled")
	updated := nested.Int(obj.Object, "status", "updatedNumberScheduled")
	available := nested.Int(obj.Object, "status", "numberAvailable")
	prefix := fmt.Sprintf("Waiting for daemon set %q rollout to finish: ", obj.GetName())
	switch {
	case updated < desired:
		return fmt.Sprintf("%s%d out of %d new pods have been updated...", prefix, updated, desired), false, nil
	case available < desired:
		return fmt.Sprintf("%s%d of %d updated pods are available...", prefix, available, desired), false, nil
	}
	return fmt.Sprintf("daemon set %q successfully rolled out", obj.GetName()), true, nil
}

func statefulSetStatus(obj *unstructured.Object) (string, bool, error) {
	if err := requireRollingUpdate(obj); err != nil {
		return "", true, err
	}
	observed := nested.Int(obj.Object, "status", "observedGeneration")
	if observed == 0 || obj.GetGeneration() > observed {
		return "Waiting for statefulset spec update to be observed...", false, nil
	}
	replicas, hasReplicas, _ := unstructured.Get[int64](obj, "spec", "replicas")
	if ready := nested.Int(obj.Object, "status", "readyReplicas"); hasReplicas && ready < replicas {
		return fmt.Sprintf("Waiting for %d pods to be ready...", replicas-ready), false, nil
	}
	updated := nested.Int(obj.Object, "status", "updatedReplicas")
	if _, isPartitioned, _ := unstructured.Get[any](obj, "spec", "updateStrategy", "rollingUpdate"); isPartitioned {
		partition, found, _ := unstructured.Get[int64](obj, "spec", "updateStrategy", "rollingUpdate", "partition")
		if hasReplicas && found && updated < replicas-partition {
			return fmt.Sprintf("Waiting for partitioned roll out to finish: %d out of %d new pods have been updated...", updated, replicas-partition), false, nil
		}
		return fmt.Sprintf("partitioned roll out complete: %d new pods have been updated...", updated), true, nil
	}
	update, _, _ := unstructured.Get[string](obj, "status", "updateRevision")
	current, _, _ := unstructured.Get[string](obj, "status", "currentRevision")
	if update != current {
		return fmt.Sprintf("waiting for statefulset rolling update to complete %d pods at revision %s...", updated, update), false, nil
	}
	return fmt.Sprintf("statefulset rolling update complete %d pods at revision %s...", nested.Int(obj.Object, "status", "currentReplicas"), current), true, nil
}
