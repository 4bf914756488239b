package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/progress"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// maxWait is the timeout for a negative --timeout, as in kubectl.
const maxWait = 7 * 24 * time.Hour

// maxCheck limits a single check.
const maxCheck = 10 * time.Second

// creationInterval is the polling interval for selectors without a matching object.
const creationInterval = 500 * time.Millisecond

type waitOptions struct {
	objects    resource.Finder
	output     command.Output
	timeout    time.Duration
	conditions []string
}

func waitCommand(s *command.State) *cobra.Command {
	o := &waitOptions{}
	cmd := &cobra.Command{
		Use:   "wait ([-f FILENAME] | resource.group/resource.name | resource.group [(-l label | --all)]) --for=ready|create|delete|condition=NAME[=VALUE]|jsonpath='{}'[=value]",
		Short: "Wait for a specific condition on one or many resources",
		Long: "Wait until each object meets the conditions, one after the other. ready holds for any kind: a rollout is complete, " +
			"a pod is ready, the condition Ready is True. The default value of a condition is true.",
		Example: "  anyctl wait --for=ready deployment/web\n  anyctl wait --for=condition=Ready pod/web --timeout=1m\n  anyctl wait --for=jsonpath='{.status.phase}'=Running pod/web\n  anyctl wait --for=delete pod/web",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	fs := cmd.Flags()
	addFiles(fs, s, &o.objects, "identifying the resource")
	o.objects.Selection.AddFlags(fs)
	o.objects.AddAllFlag(fs)
	o.objects.AddWhereFlag(fs)
	o.output.AddFlags(fs)
	fs.DurationVar(&o.timeout, "timeout", 30*time.Second, "The length of time to wait before giving up. Zero means check once and don't wait, negative means wait for a week.")
	fs.StringArrayVar(&o.conditions, "for", nil, "The condition to wait on: [ready|create|delete|condition=condition-name[=condition-value]|jsonpath='{JSONPath expression}'=[JSONPath value]]. Multiple conditions are waited for one after the other.")
	return cmd
}

func (o *waitOptions) run(ctx context.Context, s *command.State, args []string) error {
	display := progress.New(s.Err)
	defer display.Close()
	if err := o.output.Complete(display.Above(s.Out), flags.DryRunNone); err != nil {
		return err
	}
	conditions, err := parseWaitConditions(o.conditions)
	if err != nil {
		return err
	}
	timeout := o.timeout
	if timeout < 0 {
		timeout = maxWait
	}
	waitCtx := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		waitCtx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	if slices.ContainsFunc(conditions, waitCondition.isCreate) {
		if err := o.awaitCreation(ctx, waitCtx, args, display); err != nil {
			return err
		}
	}
	return o.awaitAll(ctx, waitCtx, s, args, conditions, display)
}

// awaitAll waits for the conditions of each object. For delete, missing objects are skipped.
func (o *waitOptions) awaitAll(ctx, waitCtx context.Context, s *command.State, args []string, conditions []waitCondition, display *progress.Display) error {
	isDelete := slices.ContainsFunc(conditions, waitCondition.isDelete)
	count := &command.Tally{Verb: "met"}
	found := 0
	var errs []error
	for t, err := range o.objects.Objects(ctx, args, true) {
		if isDelete && apierrors.IsNotFound(err) {
			continue
		}
		found++
		if err == nil {
			err = o.await(ctx, waitCtx, t, conditions, display)
		}
		switch {
		case err == nil:
			count.Done++
		case t != nil:
			count.Fail(t.String())
			fallthrough
		default:
			errs = append(errs, err)
		}
		if err != nil && ctx.Err() != nil {
			break
		}
	}
	display.Close()
	if found == 0 && !isDelete {
		return errors.New("no matching resources found")
	}
	return count.Report(s, errors.Join(errs...))
}

// await waits for the conditions of an object in their order.
func (o *waitOptions) await(ctx, waitCtx context.Context, t *resource.Info, conditions []waitCondition, display *progress.Display) error {
	key := t.Namespace + "/" + t.String()
	defer display.Remove(key)
	for _, condition := range conditions {
		display.Update(key, "waiting for %s: %s", t, condition.text)
		if condition.failure != nil {
			*condition.failure = nil // of the previous object
		}
		obj, err := o.awaitOne(ctx, waitCtx, t, condition, func(obj *unstructured.Object) {
			display.Update(key, "waiting for %s: %s: it is %s", t, condition.text, t.Resource.Readiness(obj))
		})
		if err != nil {
			return o.waitError(ctx, t, condition, err)
		}
		if obj == nil {
			obj = t.Object
		}
		if err := o.output.Object(obj, "condition met"); err != nil {
			return err
		}
	}
	return nil
}

// errCheckedOnce is the result of an unmet condition that was checked once.
var errCheckedOnce = errors.New("checked once")

// awaitOne waits for a condition, and checks it once with --timeout=0 or after waitCtx has ended. observe is called with each version of
// the object.
func (o *waitOptions) awaitOne(ctx, waitCtx context.Context, t *resource.Info, condition waitCondition, observe func(*unstructured.Object)) (*unstructured.Object, error) {
	checksOnce := o.timeout == 0 || waitCtx.Err() != nil
	if checksOnce { // the object may be deleted meanwhile
		var cancel context.CancelFunc
		waitCtx, cancel = context.WithTimeout(ctx, maxCheck)
		defer cancel()
	}
	ctx = waitCtx
	if condition.isDelete() {
		return o.awaitDeletion(ctx, t, checksOnce)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	opts := &dynamic.WaitOptions{OnProgress: func(progress dynamic.WaitProgress) {
		if progress.Object == nil {
			return
		}
		observe(progress.Object)
		if checksOnce {
			cancel(errCheckedOnce)
		}
	}}
	return t.Resource.WithWaitOptions(opts).Wait(ctx, t.Name, condition.condition)
}

func (o *waitOptions) awaitDeletion(ctx context.Context, t *resource.Info, checksOnce bool) (*unstructured.Object, error) {
	if !checksOnce {
		return t.Resource.Wait(ctx, t.Name, dynamic.Deleted(t.Object.GetUID()))
	}
	_, err := t.Resource.Get(ctx, t.Name, nil)
	if apierrors.IsNotFound(err) {
		return t.Object, nil
	}
	if err == nil {
		err = fmt.Errorf("wait for %s: it still exists: %w: %w", t, context.Canceled, errCheckedOnce)
	}
	return nil, err
}

// waitError converts the error of a wait to kubectl's text.
func (o *waitOptions) waitError(ctx context.Context, t *resource.Info, condition waitCondition, err error) error {
	if errors.Is(err, errCheckedOnce) && o.timeout == 0 {
		return fmt.Errorf("condition not met for %s/%s", t.Resource.APIResource().GVR.Resource, t.Name)
	}
	if condition.failure != nil && *condition.failure != nil {
		return *condition.failure
	}
	return timeoutError(ctx, t, err)
}

// awaitCreation waits until all named objects exist, or the selectors match an object. It returns an error for each missing object.
func (o *waitOptions) awaitCreation(ctx, waitCtx context.Context, args []string, display *progress.Display) error {
	const key = "create"
	defer display.Remove(key)
	isSelected := false
	var errs []error
	for t, err := range o.objects.Objects(ctx, args, false) {
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		isSelected = true
		if o.timeout == 0 {
			continue
		}
		display.Update(key, "waiting for %s: it does not exist", t)
		if waitCtx.Err() == nil {
			_, err = t.Resource.Wait(waitCtx, t.Name, dynamic.Exists())
		} else if _, err = t.Resource.Get(ctx, t.Name, nil); apierrors.IsNotFound(err) {
			err = fmt.Errorf("wait for %s: it does not exist: %w", t, context.DeadlineExceeded)
		}
		if err != nil {
			errs = append(errs, timeoutError(ctx, t, err))
		}
	}
	for !isSelected && o.timeout != 0 {
		display.Update(key, "waiting for objects that the selector selects")
		if err := sleep(waitCtx, creationInterval); err != nil {
			if ctx.Err() == nil {
				err = errors.New("timed out waiting for the condition")
			}
			return err
		}
		for _, err := range o.objects.Objects(waitCtx, args, true) {
			if err != nil {
				return err
			}
			isSelected = true
		}
	}
	return errors.Join(errs...)
}
