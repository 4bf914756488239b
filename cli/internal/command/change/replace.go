package change

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// defaultReplaceTimeout bounds the wait for a deleted object of --force.
const defaultReplaceTimeout = 5 * time.Minute

type replaceOptions struct {
	command.Creation

	objects     resource.Finder
	deletion    deleteOptions
	raw         string
	subresource string
}

func replaceCommand(s *command.State) *cobra.Command {
	o := &replaceOptions{}
	cmd := &cobra.Command{
		Use:     "replace -f FILENAME",
		Short:   "Replace a resource by file name or stdin",
		Long:    "Replace a resource by file name or stdin. JSON and YAML formats are accepted. The file has the complete object: fields that it lacks are removed.",
		Example: "  anyctl replace -f ./pod.json\n  anyctl get deployment web -o yaml | sed 's/v1/v2/' | anyctl replace -f -\n  anyctl replace --force -f ./pod.json",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	fs := cmd.Flags()
	addFiles(fs, s, &o.objects, "to use to replace the resource")
	o.AddFlags(fs)
	o.Write.AddValidateFlag(fs)
	fs.StringVar(&o.deletion.cascade, "cascade", "background", `Must be "background", "orphan", or "foreground". Selects the deletion cascading strategy for the dependents (e.g. Pods created by a ReplicationController).`)
	fs.Lookup("cascade").NoOptDefVal = "background"
	fs.IntVar(&o.deletion.gracePeriod, "grace-period", -1, "Period of time in seconds given to the resource to terminate gracefully. Ignored if negative. Set to 1 for immediate shutdown. Needs --force.")
	fs.BoolVar(&o.deletion.force, "force", false, "If true, delete the objects, wait until they are gone, and create them.")
	fs.DurationVar(&o.deletion.timeout, "timeout", 0, "The length of time to wait before giving up on a delete, zero means 5 minutes. Needs --force.")
	fs.BoolVar(&o.deletion.wait, "wait", false, "Without effect: --force waits for each deleted object.")
	fs.StringVar(&o.raw, "raw", "", "Raw URI to PUT to the server. Uses the transport specified by the kubeconfig file.")
	fs.StringVar(&o.subresource, "subresource", "", "If specified, replace will operate on the subresource of the requested object.")
	return cmd
}

func (o *replaceOptions) complete(s *command.State) error {
	if err := o.Complete(s); err != nil {
		return err
	}
	_, err := o.deletion.propagation()
	hasPaths := len(o.objects.Files.Paths) > 0
	switch {
	case err != nil:
		return err
	case o.objects.Files.IsEmpty():
		return errors.New("must specify one of -f and -k")
	case o.deletion.gracePeriod >= 0 && !o.deletion.force:
		return errors.New("--grace-period must have --force specified")
	case o.deletion.timeout != 0 && !o.deletion.force:
		return errors.New("--timeout must have --force specified")
	case o.deletion.force && o.Write.DryRun != flags.DryRunNone:
		return errors.New("--dry-run can not be used when --force is set")
	case o.raw != "" && !hasPaths:
		return errors.New("--raw can only use a single local file or stdin")
	case o.raw != "":
		return command.ValidateRaw(o.raw, &o.objects.Files, o.Output.Output)
	}
	return nil
}

func (o *replaceOptions) run(ctx context.Context, s *command.State, args []string) error {
	if err := o.complete(s); err != nil {
		return err
	}
	if o.raw != "" {
		return s.Raw(ctx, http.MethodPut, o.raw, o.objects.Files.Paths[0])
	}
	objects, readErr := o.objects.Manifests(ctx, args)
	if len(objects) == 0 {
		if readErr == nil {
			readErr = errors.New("no objects passed to replace")
		}
		return readErr
	}
	resolver, err := resource.NewResolver(ctx, s.Connection)
	if err != nil {
		return err
	}
	if o.deletion.force {
		if readErr != nil {
			return readErr // nothing is deleted that could not be created again
		}
		if err := o.deleteAll(ctx, s, resolver, objects); err != nil {
			return err
		}
	}
	return eachManifestObject(ctx, s, "replaced", objects, readErr, func(obj *manifest.Object) error {
		found, err := resolver.Resolve(ctx, obj)
		if err != nil {
			return err
		}
		if o.SaveConfig {
			found.Object.SetNamespace(found.Namespace)
			if err := command.SaveConfig(found.Object); err != nil {
				return command.SourceError("replacing", found.Source, err)
			}
		}
		replaced, err := o.replace(ctx, found)
		if err != nil {
			return err
		}
		return o.Output.Object(replaced, "replaced")
	})
}

// deleteAll deletes the objects, and waits until they are gone.
func (o *replaceOptions) deleteAll(ctx context.Context, s *command.State, resolver *resource.Resolver, objects []*manifest.Object) error {
	o.deletion.format = o.Output.Output
	if o.deletion.gracePeriod == 0 {
		o.deletion.gracePeriod = 1 // as kubectl
	}
	if o.deletion.timeout == 0 {
		o.deletion.timeout = defaultReplaceTimeout
	}
	var begun []deleted
	for _, obj := range objects {
		found, err := resolver.Resolve(ctx, obj)
		if err != nil {
			return err
		}
		one, err := o.deletion.delete(ctx, s, found)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return err
		case !one.isGone:
			begun = append(begun, one)
		}
	}
	return o.deletion.awaitAll(ctx, s, begun)
}

// replace updates an object, or creates it after --force. An object without resourceVersion replaces any version, as in kubectl.
func (o *replaceOptions) replace(ctx context.Context, found *resource.Info) (*unstructured.Object, error) {
	in := found.Resource.WithDefaults(o.Write.Defaults())
	switch {
	case o.Write.DryRun == flags.DryRunClient:
		obj := found.Object.DeepCopy()
		obj.SetNamespace(found.Namespace)
		return obj, nil
	case o.deletion.force:
		found.Object.SetResourceVersion("")
		found.Object.SetUID("")
		return in.Create(ctx, found.Object, nil)
	case o.subresource != "":
		in = in.Subresource(o.subresource)
	}
	if found.Object.GetResourceVersion() == "" {
		// The error of a missing object is that of the update.
		if stored, err := in.Get(ctx, found.Name, nil); err == nil {
			found.Object.SetResourceVersion(stored.GetResourceVersion())
		}
	}
	replaced, err := in.Update(ctx, found.Object, nil)
	return replaced, command.SourceError("replacing", found.Source, err)
}
