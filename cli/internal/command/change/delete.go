package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/applysets"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/cli/progress"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
)

type deleteOptions struct {
	objects        resource.Finder
	write          flags.Write
	cascade        string
	gracePeriod    int
	force, now     bool
	wait           bool
	timeout        time.Duration
	ignoreNotFound bool
	interactive    bool
	format         string
	// output is the format for whole objects, or nil for lines.
	output  *print.Flags
	printer *print.Printer
	raw     string
	set     applysets.Flags
}

// deleted is an object after its DELETE request.
type deleted struct {
	target *resource.Info
	uid    types.UID
	isGone bool
}

func deleteCommand(s *command.State) *cobra.Command {
	o := &deleteOptions{}
	cmd := &cobra.Command{
		Use:        "delete ([-f FILENAME] | TYPE [(NAME | -l label | --all)])",
		Short:      "Delete resources by file names, stdin, resources and names, or by resources and label selector",
		SuggestFor: []string{"rm", "remove"},
		Example:    "  anyctl delete -f ./pod.json\n  anyctl delete pod,service web\n  anyctl delete pods,services -l name=web\n  anyctl delete pod web --now\n  anyctl delete pods --all\n  anyctl delete --applyset=web -n shop",
		RunE:       func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	o.addFlags(cmd.Flags(), s)
	return cmd
}

func (o *deleteOptions) addFlags(fs *pflag.FlagSet, s *command.State) {
	addFiles(fs, s, &o.objects, "containing the resource to delete")
	o.objects.Selection.AddFlags(fs)
	o.objects.AddAllFlag(fs)
	o.objects.AddWhereFlag(fs)
	o.objects.RejectNamesWithAll = true
	o.objects.DefinitionsLast = true
	o.write.AddDryRunFlag(fs)
	fs.StringVar(&o.cascade, "cascade", "background", `Must be "background", "orphan", or "foreground". Selects the deletion cascading strategy for the dependents (e.g. Pods created by a ReplicationController).`)
	fs.Lookup("cascade").NoOptDefVal = "background"
	fs.IntVar(&o.gracePeriod, "grace-period", -1, "Period of time in seconds given to the resource to terminate gracefully. Ignored if negative. Set to 1 for immediate shutdown. Can only be set to 0 when --force is true (force deletion).")
	fs.BoolVar(&o.force, "force", false, "If true, immediately remove resources from API and bypass graceful deletion. Note that immediate deletion of some resources may result in inconsistency or data loss and requires confirmation.")
	fs.BoolVar(&o.now, "now", false, "If true, resources are signaled for immediate shutdown (same as --grace-period=1).")
	fs.BoolVar(&o.wait, "wait", true, "If true, wait for resources to be gone before returning. This waits for finalizers.")
	fs.DurationVar(&o.timeout, "timeout", 0, "The length of time to wait before giving up on a delete, zero means no limit.")
	fs.BoolVar(&o.ignoreNotFound, "ignore-not-found", false, `Treat "resource not found" as a successful delete. Defaults to "true" when --all is specified.`)
	fs.BoolVarP(&o.interactive, "interactive", "i", false, "If true, delete resource only when user confirms.")
	o.set.AddFlags(fs, "to delete, with its parent")
	fs.StringVar(&o.raw, "raw", "", "Raw URI to DELETE to the server. Uses the transport specified by the kubeconfig file.")
	fs.StringVarP(&o.format, "output", "o", "", `Output mode. Use "-o name" for shorter output (resource/name), or json, yaml or another format of get for the objects before their deletion.`)
}

func (o *deleteOptions) complete(cmd *cobra.Command, s *command.State) error {
	selection := &o.objects.Selection
	if err := o.write.Complete(s.Errorf); err != nil {
		return err
	}
	if (o.objects.All || selection.LabelSelector != "" || selection.FieldSelector != "" || o.objects.Where != "") && !cmd.Flags().Changed("ignore-not-found") {
		o.ignoreNotFound = true
	}
	switch {
	case o.now && o.gracePeriod != -1:
		return errors.New("--now and --grace-period cannot be specified together")
	case o.now:
		o.gracePeriod = 1
	}
	if o.gracePeriod == 0 && !o.force {
		o.gracePeriod = 1 // as kubectl: only --force deletes without a grace period
	}
	if o.force && o.gracePeriod < 0 {
		o.gracePeriod = 0
	}
	_, err := o.propagation()
	return err
}

// warn rejects conflicting flags and prints warnings.
func (o *deleteOptions) warn(s *command.State) error {
	if o.format != "" && o.format != "name" {
		output := print.NewFlags()
		output.Output = o.format
		if _, err := output.Printer(io.Discard); err != nil {
			return err
		}
		if o.set.IsSet() {
			return errors.New("--applyset prints lines (use -o name for their short form)")
		}
		o.output = output
	}
	switch {
	case o.force && o.gracePeriod > 0:
		return errors.New("--force and --grace-period greater than 0 cannot be specified together")
	case o.force:
		s.Errorf("Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.")
	}
	return nil
}

func (o *deleteOptions) propagation() (metav1.DeletionPropagation, error) {
	switch o.cascade {
	case "background", "true":
		return metav1.DeletePropagationBackground, nil
	case "foreground":
		return metav1.DeletePropagationForeground, nil
	case "orphan", "false":
		return metav1.DeletePropagationOrphan, nil
	}
	return "", fmt.Errorf("invalid cascade value (%v). Must be \"background\", \"foreground\", or \"orphan\"", o.cascade)
}

func (o *deleteOptions) run(cmd *cobra.Command, s *command.State, args []string) error {
	if err := o.complete(cmd, s); err != nil {
		return err
	}
	if err := o.warn(s); err != nil {
		return err
	}
	ctx := cmd.Context()
	if o.set.IsSet() {
		return o.deleteSet(cmd, s)
	}
	if o.raw != "" {
		return o.deleteRaw(ctx, s)
	}
	if o.interactive {
		return o.confirmAndDelete(ctx, s, args)
	}
	begun, found, err := o.deleteAll(ctx, s, args, nil)
	if err == nil && found == 0 {
		return s.Printf("No resources found\n")
	}
	if err != nil || !o.wait || o.write.DryRun != flags.DryRunNone {
		return err
	}
	return o.awaitAll(ctx, s, begun)
}

// deleteSet deletes the objects of a set.
func (o *deleteOptions) deleteSet(cmd *cobra.Command, s *command.State) error {
	return o.set.Delete(cmd, s, &applysets.DeleteOptions{
		DryRun: o.write.DryRun, Timeout: o.timeout, IgnoreNotFound: o.ignoreNotFound,
		Print: func(s *command.State, ref applyset.Reference) error {
			return o.printLine(s, kindName(ref.Kind.Kind, ref.Kind.Group), ref.Name, ref.Namespace)
		},
	})
}

// deleteRaw sends DELETE to the URI of --raw, with the file as request body.
func (o *deleteOptions) deleteRaw(ctx context.Context, s *command.State) error {
	if o.interactive {
		return errors.New("--interactive can not be used with --raw")
	}
	if err := command.ValidateRaw(o.raw, &o.objects.Files, o.format); err != nil {
		return err
	}
	file := ""
	if len(o.objects.Files.Paths) > 0 {
		file = o.objects.Files.Paths[0]
	}
	return s.Raw(ctx, http.MethodDelete, o.raw, file)
}

// deleteAll deletes the objects. A non-nil confirmed limits the deletion to its objects.
func (o *deleteOptions) deleteAll(ctx context.Context, s *command.State, args []string, confirmed map[string]bool) (begun []deleted, found int, err error) {
	display := progress.New(s.Err)
	defer display.Close()
	out := *s
	out.Out = display.Above(s.Out)
	if o.output != nil {
		if o.printer, err = o.output.Printer(out.Out); err != nil {
			return nil, 0, err
		}
	}
	count := &command.Tally{Verb: "deleted"}
	var errs []error
	warnedOfScope := o.objects.Selection.AllNamespaces || s.Connection.NamespaceFlag == ""
	for t, err := range o.objects.Objects(ctx, args, o.printer != nil) {
		if err == nil && confirmed != nil && !confirmed[t.Namespace+"/"+t.String()] {
			continue
		}
		if err == nil {
			found++
			if !warnedOfScope && !t.Resource.APIResource().Namespaced {
				warnedOfScope = true
				s.Errorf("Warning: deleting cluster-scoped resources, not scoped to the provided namespace")
			}
			var one deleted
			if one, err = o.delete(ctx, &out, t); err == nil && !one.isGone {
				begun = append(begun, one)
			}
		}
		switch {
		case err == nil:
			count.Done++
			display.Update("delete", "%d objects deleted", count.Done)
		case o.ignoreNotFound && apierrors.IsNotFound(err):
		default:
			errs = append(errs, err)
			if t != nil {
				count.Fail(t.String())
			}
		}
		if ctx.Err() != nil {
			errs = append(errs, context.Cause(ctx))
			break
		}
	}
	display.Close()
	return begun, found, count.Report(s, errors.Join(errs...))
}

// delete deletes an object. The API server returns a Status with the UID of a removed object, or the object while finalizers or
// its grace period keep it.
func (o *deleteOptions) delete(ctx context.Context, s *command.State, t *resource.Info) (deleted, error) {
	one := deleted{target: t}
	if o.write.DryRun != flags.DryRunClient {
		propagation, _ := o.propagation() // already validated
		opts := &metav1.DeleteOptions{PropagationPolicy: &propagation}
		if o.gracePeriod >= 0 {
			seconds := int64(o.gracePeriod)
			opts.GracePeriodSeconds = &seconds
		}
		result, err := t.Resource.WithDefaults(o.write.Defaults()).Delete(ctx, t.Name, opts)
		if err != nil {
			return one, command.SourceError("deleting", t.Source, err)
		}
		if result.Object != nil {
			one.uid = result.Object.GetUID()
		} else if details := result.Status.Details; details != nil {
			one.uid = details.UID
			one.isGone = details.UID != ""
		}
	}
	return one, o.printDeleted(s, t)
}

func (o *deleteOptions) printDeleted(s *command.State, t *resource.Info) error {
	if o.printer != nil {
		return o.printer.Object(t.Object)
	}
	kind := t.Resource.APIResource().GVK
	return o.printLine(s, kindName(kind.Kind, kind.Group), t.Name, t.Namespace)
}

func (o *deleteOptions) printLine(s *command.State, kind, name, namespace string) error {
	if o.format == "name" {
		return s.Printf("%s/%s\n", kind, name)
	}
	operation := "deleted"
	if o.gracePeriod == 0 {
		operation = "force deleted"
	}
	if namespace != "" {
		operation += " from " + namespace + " namespace"
	}
	switch o.write.DryRun {
	case flags.DryRunClient:
		operation += " (dry run)"
	case flags.DryRunServer:
		operation += " (server dry run)"
	case flags.DryRunNone:
	}
	return s.Printf("%s %q %s\n", kind, name, operation)
}

// awaitAll waits until the objects are deleted. Like kubectl, it does not wait for an object if the user may not watch it.
func (o *deleteOptions) awaitAll(ctx context.Context, s *command.State, begun []deleted) error {
	display := progress.New(s.Err)
	defer display.Close()
	waitCtx := ctx
	if o.timeout > 0 {
		var cancel context.CancelFunc
		waitCtx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	count := &command.Tally{Verb: "gone"}
	var errs []error
	for i, d := range begun {
		if waitCtx.Err() != nil {
			count.Fail(d.target.String())
			if len(errs) == 0 {
				errs = append(errs, timeoutError(ctx, d.target, context.Cause(waitCtx)))
			}
			continue
		}
		display.Update("wait", "%d of %d objects are gone, waiting for %s", i, len(begun), d.target)
		var uids []types.UID
		if d.uid != "" {
			uids = append(uids, d.uid)
		}
		_, err := d.target.Resource.Wait(waitCtx, d.target.Name, dynamic.Deleted(uids...))
		switch {
		case err == nil || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err):
			count.Done++
		default:
			count.Fail(d.target.String())
			errs = append(errs, timeoutError(ctx, d.target, err))
		}
	}
	display.Close()
	return count.Report(s, errors.Join(errs...))
}

// timeoutError returns kubectl's error for a timeout, followed by the reason. Errors other than a timeout are returned unchanged.
func timeoutError(ctx context.Context, t *resource.Info, err error) error {
	isTimeout := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errCheckedOnce)
	if ctx.Err() != nil || !isTimeout {
		return err
	}
	return fmt.Errorf("timed out waiting for the condition on %s/%s%s", t.Resource.APIResource().GVR.Resource, t.Name, waitReason(err))
}

// waitReason returns the reason of a wait's timeout: ": it still exists".
func waitReason(err error) string {
	text := err.Error()
	_, text, found := strings.Cut(text, "\": ") // skips: wait for deployments.apps "shop/web": …
	reason, _, _ := strings.Cut(text, ": context ")
	if !found || reason == "" {
		return ""
	}
	return ": " + reason
}

// confirmAndDelete lists the objects and deletes them after confirmation.
func (o *deleteOptions) confirmAndDelete(ctx context.Context, s *command.State, args []string) error {
	confirmed := map[string]bool{}
	var names []string
	for t, err := range o.objects.Objects(ctx, args, true) {
		if err != nil {
			if o.ignoreNotFound && apierrors.IsNotFound(err) {
				continue
			}
			return err
		}
		kind := t.Resource.APIResource().GVK
		names = append(names, kindName(kind.Kind, kind.Group)+"/"+t.Name)
		confirmed[t.Namespace+"/"+t.String()] = true
	}
	if len(names) == 0 {
		return s.Printf("No resources found\n")
	}
	if err := s.Printf("You are about to delete the following %d resource(s):\n", len(names)); err != nil {
		return err
	}
	for _, name := range names {
		if err := s.Printf("%s\n", name); err != nil {
			return err
		}
	}
	if err := s.Printf("Do you want to continue? (y/N): "); err != nil {
		return err
	}
	var answer string
	if _, err := fmt.Fscanln(s.In, &answer); err != nil || !strings.EqualFold(answer, "y") {
		return s.Printf("deletion is cancelled\n")
	}
	begun, _, err := o.deleteAll(ctx, s, args, confirmed)
	if err != nil || !o.wait || o.write.DryRun != flags.DryRunNone {
		return err
	}
	return o.awaitAll(ctx, s, begun)
}
