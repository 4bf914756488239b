package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/change/assign"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/cli/progress"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/unstructured"
)

// setOptions are the shared options of all forms of set.
type setOptions struct {
	objects     resource.Finder
	write       flags.Write
	output      command.Output
	subresource string
	// failure is the prefix of the error of a rejected change, as in kubectl.
	failure string
	// missing is the error without resources. nil is that of kubectl's commands with a finder.
	missing error
	// isPlain omits the target in errors, like failure.
	isPlain bool
	// resourceVersion is a precondition, unless it is "".
	resourceVersion string
}

func setCommand(s *command.State) *cobra.Command {
	o := &setOptions{missing: errNoResources}
	canAppend := false
	cmd := &cobra.Command{
		Use:   "set (-f FILENAME | TYPE NAME | TYPE/NAME) PATH=VALUE... [PATH-]",
		Short: "Set fields of objects of any kind",
		Long: "Set fields of objects of any kind by their paths. The value of a new field has the type that the kind's schema has for " +
			"it. A field that has a value keeps a text a text, and takes JSON otherwise. PATH- removes a field. Fields that the kind " +
			"does not have are rejected. To set a resource called image or env, give its full name: images.example.com.",
		Example: "  anyctl set deploy/web spec.replicas=3 'spec.template.spec.containers[name=web].image=nginx:2'\n" +
			"  anyctl set configmap settings data.port=8080\n  anyctl set widgets -l app=web spec.paused=true spec.owner-\n" +
			"  anyctl set image deploy/web web=nginx:2\n  anyctl set env deploy/web MODE=fast\n" +
			"  anyctl set resources deploy/web --limits=cpu=200m",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			resources, assignments, err := assign.Parse(args)
			if err != nil {
				return err
			}
			if o.objects.Files.IsEmpty() && isSubcommand(resources, len(assignments)) {
				return command.UsageError(cmd, "unknown command %q", strings.Join(args, " "))
			}
			if len(assignments) == 0 {
				return errors.New("at least one field update is required: PATH=VALUE or PATH-")
			}
			return o.run(cmd.Context(), s, resources, "updated", "unchanged", func(t *resource.Info, obj *unstructured.Object) error {
				for _, a := range assignments {
					if err := a.Apply(obj, canAppend, func() *schema.Schema { return kindSchema(cmd.Context(), s, t) }); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.ValidArgsFunction = s.Connection.CompleteAssignments
	o.addFlags(cmd, s)
	o.write.AddValidateFlag(cmd.Flags())
	cmd.Flags().BoolVar(&canAppend, "append", false, "Append elements of lists that a path selects by key and that do not exist.")
	cmd.Flags().StringVar(&o.subresource, "subresource", "", "If specified, set will operate on the subresource of the requested object.")
	if s.IsNamed(cmd.Name()) {
		cmd.AddCommand(
			setImageCommand(s), setEnvCommand(s), setResourcesCommand(s), setSelectorCommand(s), setServiceAccountCommand(s), setSubjectCommand(s),
		)
	}
	return cmd
}

// isSubcommand reports whether the first argument is meant as a subcommand: it is alone, or TYPE/NAME follows, which no type precedes.
func isSubcommand(resources []string, assignments int) bool {
	hasSlash := func(arg string) bool { return strings.Contains(arg, "/") }
	if len(resources) == 0 || hasSlash(resources[0]) {
		return false
	}
	return len(resources) == 1 && assignments == 0 || slices.ContainsFunc(resources[1:], hasSlash)
}

// errNoResources is the error of set and set env without resources.
var errNoResources = errors.New("one or more resources must be specified as <resource> <name> or <resource>/<name>")

// checkResources returns an error without resources and files.
func (o *setOptions) checkResources(ctx context.Context, resources []string) error {
	if len(resources) > 0 || !o.objects.Files.IsEmpty() {
		return nil
	}
	if o.missing != nil {
		return o.missing
	}
	_, err := o.objects.Targets(ctx, nil)
	return err
}

// kindSchema returns the schema of a target's kind, or nil for a local object and for a kind without a schema: then the server
// checks the values.
func kindSchema(ctx context.Context, s *command.State, t *resource.Info) *schema.Schema {
	if t.Resource == nil {
		return nil
	}
	schemas, err := s.Connection.Schemas(ctx)
	if err != nil {
		return nil
	}
	kind, err := schemas.Kind(ctx, t.Resource.APIResource().GVK)
	if err != nil {
		return nil
	}
	return kind
}

func (o *setOptions) addFlags(cmd *cobra.Command, s *command.State) {
	fs := cmd.Flags()
	addFiles(fs, s, &o.objects, "identifying the resource to get from a server")
	o.objects.Selection.AddLabelFlag(fs)
	o.objects.AddAllFlag(fs)
	o.objects.AddWhereFlag(fs)
	o.write.AddDryRunFlag(fs)
	o.write.AddFieldManagerFlag(fs)
	o.output.AddFlags(fs)
	fs.BoolVar(&o.objects.Local, "local", false, "If true, set will NOT contact api-server but run locally.")
}

// complete parses the flags. Objects are printed to out.
func (o *setOptions) complete(s *command.State, out io.Writer, resources []string) error {
	if err := o.write.Complete(s.Errorf); err != nil {
		return err
	}
	switch {
	case o.objects.All && o.objects.Selection.LabelSelector != "":
		return errors.New("cannot set --all and --selector at the same time")
	case o.objects.Local && o.write.DryRun == flags.DryRunServer:
		return errors.New("cannot specify --local and --dry-run=server - did you mean --dry-run=client?")
	case o.objects.Local && len(resources) > 0:
		return errors.New("you must specify resources by --filename when --local is set")
	}
	return o.output.Complete(out, o.write.DryRun)
}

// run calls change for a copy of each object and sends the difference. For an unchanged object it prints the text unchanged, or
// nothing for "".
func (o *setOptions) run(ctx context.Context, s *command.State, resources []string, operation, unchanged string,
	change func(*resource.Info, *unstructured.Object) error,
) error {
	display := progress.New(s.Err)
	defer display.Close()
	if err := o.checkResources(ctx, resources); err != nil {
		return err
	}
	if err := o.complete(s, display.Above(s.Out), resources); err != nil {
		return err
	}
	count := &command.Tally{Verb: operation}
	var errs []error
	for t, err := range o.objects.Objects(ctx, resources, true) {
		if err == nil {
			err = o.set(ctx, t, operation, unchanged, change)
		}
		if err == nil {
			count.Done++
			display.Update("set", "%d objects %s", count.Done, operation)
			continue
		}
		errs = append(errs, err)
		if t != nil {
			count.Fail(t.String())
		}
		if ctx.Err() != nil {
			break
		}
	}
	display.Close()
	return count.Report(s, errors.Join(errs...))
}

// errNothingToSend is returned by a change function to keep the object unchanged.
var errNothingToSend = errors.New("nothing to send")

func (o *setOptions) set(ctx context.Context, t *resource.Info, operation, unchanged string, change func(*resource.Info, *unstructured.Object) error) error {
	isLocal := o.objects.Local || o.write.DryRun == flags.DryRunClient
	if !isLocal {
		t.Resource = t.Resource.WithDefaults(o.write.Defaults())
	}
	if o.subresource != "" && !isLocal {
		t.Resource = t.Resource.Subresource(o.subresource)
		t.Object = nil
	}
	var result *unstructured.Object
	isChanged := false
	send := dynamic.RetryOnConflict
	if o.resourceVersion != "" {
		send = func(ctx context.Context, send func(context.Context) error) error { return send(ctx) }
	}
	err := send(ctx, func(ctx context.Context) (err error) {
		before := t.Object
		if !isLocal { // read again after a conflict
			t.Object = nil
		}
		if before == nil {
			if before, err = t.Resource.Get(ctx, t.Name, nil); err != nil {
				return err
			}
		}
		result = before.DeepCopy()
		if err := change(t, result); errors.Is(err, errNothingToSend) {
			return nil
		} else if err != nil && o.failure == "" && !o.isPlain {
			return fmt.Errorf("%s: %w", describe(t, before), err)
		} else if err != nil {
			return err
		}
		patch := newMergePatch(before.Object, result.Object)
		isChanged = !patch.isEmpty()
		if isLocal || !isChanged {
			return nil
		}
		result, err = o.send(ctx, t, before, patch)
		return err
	})
	var failed *failedChangeError
	switch {
	case errors.As(err, &failed):
		return errors.New(failed.Error()) // a single line, as in kubectl
	case err != nil:
		return err
	case isChanged:
		return o.output.Object(result, operation)
	case unchanged != "":
		return o.output.Object(result, unchanged)
	}
	return nil
}

func (o *setOptions) send(ctx context.Context, t *resource.Info, before *unstructured.Object, patch *mergePatch) (*unstructured.Object, error) {
	content := patch.content
	switch {
	case o.resourceVersion != "":
		content = withResourceVersion(content, o.resourceVersion)
	case len(patch.lists) > 0:
		content = withResourceVersion(content, before.GetResourceVersion())
	}
	body, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	changed, err := t.Resource.Patch(ctx, t.Name, types.MergePatchType, body, &metav1.PatchOptions{})
	var fields *dynamic.FieldValidationError
	switch {
	case errors.As(err, &fields):
		return nil, fmt.Errorf("%s: unknown field %s", describe(t, before), strings.Join(fields.Unknown, ", "))
	case err != nil && o.failure != "":
		return nil, &failedChangeError{prefix: o.failure, err: err}
	}
	return changed, err
}

// pair returns an object in the form of kubectl's errors: deployments.apps/web.
func pair(t *resource.Info) string {
	if t.Resource == nil {
		return print.Name(t.Object)
	}
	return t.Resource.APIResource().GVR.GroupResource().String() + "/" + t.Name
}

// describe returns an object in the form of messages. obj is a version of the object.
func describe(t *resource.Info, obj *unstructured.Object) string {
	if t.Resource == nil {
		return print.Name(obj)
	}
	return t.String()
}

// failedChangeError is a rejected change with kubectl's prefix. It unwraps to the server's error, such as a conflict.
type failedChangeError struct {
	prefix string
	err    error
}

func (e *failedChangeError) Error() string { return e.prefix + command.ServerMessage(e.err) }
func (e *failedChangeError) Unwrap() error { return e.err }
