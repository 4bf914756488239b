package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/applysets"
	"github.com/anykind/anykind/cli/internal/command/lastapplied"
	"github.com/anykind/anykind/cli/internal/command/plans"
	"github.com/anykind/anykind/cli/progress"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/plan"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

type applyOptions struct {
	write          flags.Write
	output         command.Output
	objects        resource.Finder
	forceConflicts bool
	serverSide     bool
	subresource    string
	set            applysets.Flags
	prune, wait    bool
	adopt          []string
	plan           string
	replace        bool
	timeout        time.Duration
}

func applyCommand(s *command.State) *cobra.Command {
	o := &applyOptions{}
	cmd := &cobra.Command{
		Use:   "apply -f FILENAME",
		Short: "Apply a configuration to a resource by file name or stdin, on the server",
		Long: "Apply a configuration to a resource by file name or stdin. The fields of each object are merged by the server " +
			"(server-side apply). Namespaces, CustomResourceDefinitions and objects that others refer to are applied first. The " +
			"annotation config.kubernetes.io/depends-on adds dependencies.\n\n" +
			"With --applyset the objects are a set. Objects that left the files since the last apply are deleted, unchanged objects " +
			"are not written, and a file with an error changes nothing. -n is the namespace of the set's parent, and of objects that name none.\n\n" +
			"With --plan, a file of plan --save is applied. Nothing is written if an object has changed since the plan.",
		Example: "  anyctl apply -f ./deploy\n  anyctl apply --plan web.plan\n  cat pod.json | anyctl apply -f -\n  anyctl apply -f ./deploy --prune --applyset=web -n shop --wait --timeout=5m",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	fs := cmd.Flags()
	addFiles(fs, s, &o.objects, "that contains the configuration to apply")
	o.objects.Selection.AddLabelFlag(fs)
	o.write.AddDryRunFlag(fs)
	o.write.AddFieldManagerFlag(fs)
	o.write.AddValidateFlag(fs)
	o.output.AddFlags(fs)
	fs.BoolVar(&o.serverSide, "server-side", true, "Apply runs on the server; no other way is supported.")
	fs.BoolVar(&o.forceConflicts, "force-conflicts", false, "If true, take over the fields that other managers own.")
	o.set.AddFlags(fs, "to apply and prune")
	fs.BoolVar(&o.prune, "prune", false, "Delete the objects of --applyset that are not in the files.")
	fs.StringSliceVar(&o.adopt, "adopt", nil, "Take the set over from kubectl first, and the fields of its objects from these field managers. The default is kubectl, with all of its commands and those of anyctl. Further managers are for example helm and kustomize-controller.")
	fs.Lookup("adopt").NoOptDefVal = applysets.Kubectl
	fs.StringVar(&o.plan, "plan", "", "Apply the plan in a file of: anyctl plan --save. It has the objects and the set.")
	fs.BoolVar(&o.replace, "replace", false, "Permit the objects of --plan that are deleted and created.")
	fs.BoolVar(&o.wait, "wait", false, "If true, wait until all objects of --applyset are ready.")
	fs.DurationVar(&o.timeout, "timeout", 0, "The length of time to wait before giving up with --wait, zero means no limit.")
	fs.StringVar(&o.subresource, "subresource", "", "If specified, apply will operate on the subresource of the requested object.")
	cmd.AddCommand(applysets.HandOverCommand(s))
	cmd.AddCommand(lastapplied.Commands(s)...)
	return cmd
}

func (o *applyOptions) validate(cmd *cobra.Command, s *command.State, args []string) error {
	if len(args) > 0 {
		return command.UsageError(cmd, "Unexpected args: %v", args)
	}
	if err := o.write.Complete(s.Errorf); err != nil {
		return err
	}
	switch {
	case o.plan != "":
		return o.validatePlan()
	case o.replace:
		return errors.New("--replace needs --plan, which names the objects to replace")
	case o.objects.Files.IsEmpty():
		return errors.New("must specify one of -f and -k")
	case !o.serverSide:
		return errors.New("--server-side=false is not supported: apply runs on the server")
	case o.write.DryRun == flags.DryRunClient:
		return errors.New("--dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)")
	}
	return o.validateSet()
}

// validatePlan rejects flags that the plan has values for.
func (o *applyOptions) validatePlan() error {
	switch {
	case !o.objects.Files.IsEmpty() || o.objects.Selection.LabelSelector != "":
		return errors.New("--plan is incompatible with -f and --selector: the plan has the objects")
	case o.set.IsSet() || o.prune || o.wait || len(o.adopt) > 0:
		return errors.New("--plan is incompatible with --applyset, --prune, --adopt and --wait: the plan has the set")
	case o.forceConflicts || o.write.FieldManager != "" || o.subresource != "" || o.write.DryRun != flags.DryRunNone:
		return errors.New("--plan is incompatible with --force-conflicts, --field-manager, --subresource and --dry-run: use these flags of plan")
	}
	return nil
}

// validateSet rejects flags that conflict with --applyset, or that need it.
func (o *applyOptions) validateSet() error {
	switch {
	case !o.set.IsSet() && o.prune:
		return errors.New("--prune needs --applyset, the set to prune")
	case !o.set.IsSet() && o.wait:
		return errors.New("--wait needs --applyset (run afterwards: anyctl wait --for=ready -f …)")
	case !o.set.IsSet() && len(o.adopt) > 0:
		return errors.New("--adopt needs --applyset, the set that takes over")
	case len(o.adopt) > 0 && o.write.DryRun != flags.DryRunNone:
		return errors.New("--adopt is incompatible with --dry-run: the set is applied after it has been taken over")
	case o.timeout != 0 && !o.wait:
		return errors.New("--timeout needs --wait")
	case !o.set.IsSet():
		return nil
	case !o.prune:
		return errors.New("--applyset requires --prune")
	case o.objects.Selection.LabelSelector != "":
		return errors.New("--selector is incompatible with --applyset")
	case o.subresource != "":
		return errors.New("--subresource is incompatible with --applyset")
	case o.write.FieldManager != "":
		return errors.New("--field-manager is incompatible with --applyset: a set has its own field manager")
	}
	return nil
}

func (o *applyOptions) run(cmd *cobra.Command, s *command.State, args []string) error {
	if err := o.validate(cmd, s, args); err != nil {
		return err
	}
	if o.set.IsSet() {
		return o.runSet(cmd.Context(), s)
	}
	if err := o.output.Complete(s.Out, o.write.DryRun); err != nil {
		return err
	}
	ctx := cmd.Context()
	if o.plan != "" {
		return o.applyPlan(ctx, s)
	}
	objects, readErr := o.objects.Manifests(ctx, nil)
	if len(objects) == 0 {
		if readErr == nil {
			readErr = errors.New("no objects passed to apply")
		}
		return readErr
	}
	resolver, err := resource.NewResolver(ctx, s.Connection)
	if err != nil {
		return err
	}
	objects, err = installOrder(ctx, s, objects)
	if err != nil {
		return err
	}
	return eachManifestObject(ctx, s, "applied", objects, readErr, func(obj *manifest.Object) error {
		found, err := resolver.Resolve(ctx, obj)
		if err != nil {
			return err
		}
		applied, err := o.apply(ctx, s, found)
		if err != nil {
			return err
		}
		if applied.GetDeletionTimestamp() != nil {
			s.Errorf("Warning: Detected changes to resource %s which is currently being deleted.", applied.GetName())
		}
		return o.output.Object(applied, "serverside-applied")
	})
}

// runSet applies the objects as a set. An error of a file is returned before anything is sent: the set would lose its objects.
func (o *applyOptions) runSet(ctx context.Context, s *command.State) error {
	display := progress.New(s.Err)
	defer display.Close()
	if err := o.output.Complete(display.Above(s.Out), o.write.DryRun); err != nil {
		return err
	}
	set, err := o.set.Open(ctx, s, o.write.Defaults())
	if err != nil {
		return err
	}
	objects, err := o.objects.Manifests(ctx, nil)
	if err != nil {
		return err
	}
	if len(objects) == 0 {
		return errors.New("no objects passed to apply (run: anyctl delete --applyset=…)")
	}
	opts := &applysets.ApplyOptions{Print: o.output.Object, Wait: o.wait, Timeout: o.timeout}
	opts.DryRun = o.write.DryRun == flags.DryRunServer
	if o.forceConflicts {
		opts.Conflicts = applyset.ConflictForce
	}
	if len(o.adopt) > 0 {
		if err := applysets.Adopt(ctx, s, set, objects, o.adopt, opts, display); err != nil {
			return err
		}
	}
	return applysets.Apply(ctx, s, set, objects, opts, display)
}

func (o *applyOptions) applyPlan(ctx context.Context, s *command.State) error {
	planned, err := plans.Load(o.plan, s.In)
	if err != nil {
		return err
	}
	client, err := s.Client(ctx)
	if err != nil {
		return err
	}
	var errs []error
	opts := &plan.ApplyOptions{
		Replace: o.replace,
		OnEvent: func(event applyset.Event) { errs = append(errs, applysets.PrintEvent(s, event, o.output.Object)) },
		Apply: func(ctx context.Context, resource *dynamic.Resource, obj *unstructured.Object, opts *metav1.ApplyOptions) (*unstructured.Object, error) {
			own := &ownership{state: s, resource: resource, manager: planned.FieldManager, isDefault: s.IsDefaultManager(planned.FieldManager)}
			return own.apply(ctx, obj, opts.Force)
		},
	}
	_, err = planned.Apply(ctx, client, opts)
	return errors.Join(append(errs, err)...)
}

func (o *applyOptions) apply(ctx context.Context, s *command.State, t *resource.Info) (*unstructured.Object, error) {
	if t.Name == "" && t.Object.GetGenerateName() != "" {
		return nil, fmt.Errorf("from %s: cannot use generate name with apply", t.Object.GetGenerateName())
	}
	own := &ownership{state: s, manager: cmp.Or(o.write.FieldManager, s.Connection.FieldManager)}
	own.isDefault = s.IsDefaultManager(own.manager)
	own.resource = t.Resource.WithDefaults(o.write.Defaults())
	own.isReadOnly = o.subresource != "" || o.write.DryRun == flags.DryRunServer
	if o.subresource != "" {
		own.resource = own.resource.Subresource(o.subresource)
	}
	if t.Namespace != "" {
		t.Object.SetNamespace(t.Namespace) // the annotation of kubectl apply has it
	}
	applied, err := own.apply(ctx, t.Object, o.forceConflicts)
	var conflict *dynamic.ApplyConflictError
	if errors.As(err, &conflict) {
		return nil, command.ConflictsError(conflict)
	}
	return applied, err
}

// installOrder returns the objects of files in the order of their installation.
func installOrder(ctx context.Context, s *command.State, objects []*manifest.Object) ([]*manifest.Object, error) {
	namespace, _, err := s.Connection.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	return resource.InstallOrder(objects, namespace)
}

// eachManifestObject calls write for each object, continues after errors, and reports a tally. readErr is the error of reading
// the files.
func eachManifestObject(ctx context.Context, s *command.State, verb string, objects []*manifest.Object, readErr error,
	write func(*manifest.Object) error,
) error {
	count := &command.Tally{Verb: verb}
	var errs []error
	for _, obj := range objects {
		if ctx.Err() != nil {
			count.Fail(describeObject(obj))
			continue
		}
		if err := write(obj); err != nil {
			errs = append(errs, err)
			count.Fail(describeObject(obj))
			continue
		}
		count.Done++
	}
	if ctx.Err() != nil {
		errs = append(errs, context.Cause(ctx))
	}
	if readErr != nil {
		errs = append(errs, readErr)
		count.Fail("what follows the error in the file")
	}
	return count.Report(s, errors.Join(errs...))
}

func describeObject(obj *manifest.Object) string {
	name := obj.GetName()
	if name == "" {
		name = obj.GetGenerateName()
	}
	return fmt.Sprintf("%s %q (%s)", obj.GetKind(), name, obj.Position())
}
