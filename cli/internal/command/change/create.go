package change

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/manifest"
	"github.com/anykind/anykind/unstructured"
)

type createOptions struct {
	write   writeFlags
	output  output
	objects objectArgs
	// isEdit opens an editor on the objects before.
	isEdit bool
	// raw is the URI to which the file is posted as it is.
	raw string
	// saveConfig writes each object to its annotation for kubectl apply.
	saveConfig bool
	// appendHash appends a hash of the content to the name of a generated object.
	appendHash bool
}

func createCommand(s *command.State) *cobra.Command {
	o := &createOptions{}
	cmd := &cobra.Command{
		Use:     "create -f FILENAME",
		Short:   "Create a resource from a file or from stdin",
		Long:    "Create a resource from a file or from stdin. JSON and YAML formats are accepted.",
		Example: "  anyctl create -f ./pod.json\n  cat pod.json | anyctl create -f -\n  anyctl create deployment web --image=nginx",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	fs := cmd.Flags()
	o.objects.addFiles(fs, s, "to use to create the resource")
	o.objects.addLabelSelector(fs)
	o.addFlags(cmd)
	fs.BoolVar(&o.isEdit, "edit", false, "Edit the API resource before creating")
	fs.StringVar(&o.raw, "raw", "", "Raw URI to POST to the server. Uses the transport specified by the kubeconfig file.")
	addGenerators(cmd, s)
	return cmd
}

// addFlags adds the flags that create has with files and with generators.
func (o *createOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	o.write.addDryRun(fs)
	o.write.addFieldManager(fs)
	o.write.addValidate(fs)
	o.output.addFlags(fs)
	fs.BoolVar(&o.saveConfig, "save-config", false, "If true, the configuration of current object will be saved in its annotation, for kubectl apply. Otherwise, the annotation will be unchanged.")
}

func (o *createOptions) complete(s *command.State) error {
	if err := o.write.complete(s.Errorf); err != nil {
		return err
	}
	return o.output.complete(s.Out, o.write.dryRun)
}

func (o *createOptions) run(cmd *cobra.Command, s *command.State, args []string) error {
	if len(args) > 0 {
		return command.UsageError(cmd, "Unexpected args: %v", args)
	}
	if o.objects.files.IsEmpty() {
		return errors.New("must specify one of -f and -k")
	}
	if err := o.validate(); err != nil {
		return err
	}
	if err := o.complete(s); err != nil {
		return err
	}
	ctx := cmd.Context()
	if o.raw != "" {
		return s.Raw(ctx, http.MethodPost, o.raw, o.objects.files.Paths[0])
	}
	objects, readErr := o.objects.readFiles(ctx, nil)
	if len(objects) == 0 {
		if readErr == nil {
			readErr = errors.New("no objects passed to create")
		}
		return readErr
	}
	if o.isEdit && readErr == nil {
		return o.edit(ctx, s, objects)
	}
	return o.createAll(ctx, s, objects, readErr)
}

// createAll creates the objects, and returns readErr if all of them were created.
func (o *createOptions) createAll(ctx context.Context, s *command.State, objects []*manifest.Object, readErr error) error {
	find, err := o.objects.finder(ctx, s)
	if err != nil {
		return err
	}
	return eachManifestObject(ctx, s, "created", manifest.DefinitionsFirst(objects), readErr, func(obj *manifest.Object) error {
		found, err := find(ctx, obj)
		if err != nil {
			return err
		}
		if o.saveConfig {
			found.object.SetNamespace(found.namespace)
			if err := saveConfig(found.object); err != nil {
				return sourceError("creating", found.source, err)
			}
		}
		created, err := o.create(ctx, found)
		if err != nil {
			return sourceError("creating", found.source, err)
		}
		return o.output.object(created, "created")
	})
}

func (o *createOptions) create(ctx context.Context, t *target) (*unstructured.Object, error) {
	if o.write.dryRun == dryRunClient {
		obj := t.object.DeepCopy()
		obj.SetNamespace(t.namespace)
		return obj, nil
	}
	return t.resource.WithDefaults(o.write.defaults()).Create(ctx, t.object, nil)
}
