package change

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/progress"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

type scaleOptions struct {
	objects                   resource.Finder
	write                     flags.Write
	output                    command.Output
	replicas, currentReplicas int
	resourceVersion           string
	timeout                   time.Duration
}

func scaleCommand(s *command.State) *cobra.Command {
	o := &scaleOptions{}
	cmd := &cobra.Command{
		Use:     "scale [--resource-version=version] [--current-replicas=count] --replicas=COUNT (-f FILENAME | TYPE NAME)",
		Short:   "Set a new size for any resource that has the subresource scale",
		Example: "  anyctl scale --replicas=3 deployment/web\n  anyctl scale --current-replicas=2 --replicas=3 deployment/web --timeout=1m",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	fs := cmd.Flags()
	addFiles(fs, s, &o.objects, "identifying the resource to set a new size")
	o.objects.Selection.AddLabelFlag(fs)
	o.objects.AddAllFlag(fs)
	o.objects.AddWhereFlag(fs)
	o.write.AddDryRunFlag(fs)
	o.output.AddFlags(fs)
	fs.StringVar(&o.resourceVersion, "resource-version", "", "Precondition for resource version. Requires that the current resource version match this value in order to scale.")
	fs.IntVar(&o.currentReplicas, "current-replicas", -1, "Precondition for current size. Requires that the current size of the resource match this value in order to scale. -1 (default) for no condition.")
	fs.IntVar(&o.replicas, "replicas", 0, "The new desired number of replicas. Required.")
	_ = cmd.MarkFlagRequired("replicas") // cannot fail: the flag exists
	fs.DurationVar(&o.timeout, "timeout", 0, "The length of time to wait before giving up on a scale operation, zero means don't wait. Any other values should contain a corresponding time unit (e.g. 1s, 2m, 3h).")
	return cmd
}

func (o *scaleOptions) complete(s *command.State) error {
	if err := o.write.Complete(s.Errorf); err != nil {
		return err
	}
	switch {
	case o.replicas < 0:
		return errors.New("The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0")
	case o.currentReplicas < -1:
		return errors.New("The --current-replicas must specify an integer of -1 or greater")
	}
	return o.output.Complete(s.Out, o.write.DryRun)
}

func (o *scaleOptions) run(ctx context.Context, s *command.State, args []string) error {
	if err := o.complete(s); err != nil {
		return err
	}
	count := &command.Tally{Verb: "scaled"}
	var targets []*resource.Info
	var errs []error
	for t, err := range o.objects.Objects(ctx, args, true) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		targets = append(targets, t)
	}
	switch {
	case len(targets) == 0 && len(errs) == 0:
		return errors.New("no objects passed to scale")
	case len(targets) > 1 && o.resourceVersion != "":
		return errors.New("cannot use --resource-version with multiple resources")
	}
	for _, t := range targets {
		if err := o.scale(ctx, s, t); err != nil {
			errs = append(errs, err)
			count.Fail(t.String())
			continue
		}
		count.Done++
	}
	return count.Report(s, errors.Join(errs...))
}

func (o *scaleOptions) scale(ctx context.Context, s *command.State, t *resource.Info) error {
	obj := t.Object.DeepCopy()
	if o.write.DryRun != flags.DryRunClient {
		if err := o.setReplicas(ctx, t); err != nil {
			return err
		}
	}
	if group := obj.GroupVersionKind().Group; group == "apps" || group == "" {
		if err := unstructured.Set(obj, int64(o.replicas), "spec", "replicas"); err != nil {
			return err
		}
	}
	if o.timeout > 0 && o.write.DryRun == flags.DryRunNone {
		if err := o.awaitReplicas(ctx, s, t); err != nil {
			return err
		}
	}
	return o.output.Object(obj, "scaled")
}

// setReplicas sets spec.replicas of the scale. With preconditions it reads, compares and updates the scale, and retries after
// conflicts.
func (o *scaleOptions) setReplicas(ctx context.Context, t *resource.Info) error {
	resource := t.Resource.WithDefaults(o.write.Defaults())
	if o.currentReplicas < 0 && o.resourceVersion == "" {
		_, err := resource.Scale(ctx, t.Name, int64(o.replicas), nil)
		return err
	}
	scales := resource.Subresource("scale")
	return dynamic.RetryOnConflict(ctx, func(ctx context.Context) error {
		scale, err := scales.Get(ctx, t.Name, nil)
		if err != nil {
			return err
		}
		if err := o.checkPreconditions(scale); err != nil {
			return err
		}
		if err := unstructured.Set(scale, int64(o.replicas), "spec", "replicas"); err != nil {
			return err
		}
		_, err = scales.Update(ctx, scale, &metav1.UpdateOptions{})
		return err
	})
}

func (o *scaleOptions) checkPreconditions(scale *unstructured.Object) error {
	replicas, _, err := unstructured.Get[int64](scale, "spec", "replicas")
	switch {
	case err != nil:
		return err
	case o.currentReplicas >= 0 && replicas != int64(o.currentReplicas):
		return fmt.Errorf("Expected replicas to be %d, was %d", o.currentReplicas, replicas)
	case o.resourceVersion != "" && scale.GetResourceVersion() != o.resourceVersion:
		return fmt.Errorf("Expected resource version to be %s, was %s", o.resourceVersion, scale.GetResourceVersion())
	}
	return nil
}

// awaitReplicas waits until status.replicas is the requested number. It returns early if spec.replicas is changed meanwhile.
func (o *scaleOptions) awaitReplicas(ctx context.Context, s *command.State, t *resource.Info) error {
	display := progress.New(s.Err)
	defer display.Close()
	waitCtx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	scales := t.Resource.Subresource("scale")
	for {
		scale, err := scales.Get(waitCtx, t.Name, nil)
		if err != nil && waitCtx.Err() == nil {
			return err
		}
		if err == nil {
			requested, _, _ := unstructured.Get[int64](scale, "spec", "replicas")
			have, _, _ := unstructured.Get[int64](scale, "status", "replicas")
			if requested != int64(o.replicas) || have == requested {
				return nil
			}
			display.Update(t.Name, "%s: %d of %d replicas", t, have, requested)
		}
		if sleep(waitCtx, time.Second) != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return errors.New("timed out waiting for " + strconv.Quote(t.Name) + " to be synced")
		}
	}
}

// sleep waits for d. It returns ctx.Err() if ctx is done earlier.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
