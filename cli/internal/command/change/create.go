package change

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/change/editor"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

type createOptions struct {
	write   flags.Write
	output  command.Output
	objects resource.Finder
	// isEdit opens an editor on the objects before they are created.
	isEdit bool
	// raw is the URI for posting the file unchanged.
	raw string
	// saveConfig sets the annotation last-applied-configuration of each object.
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
	addFiles(fs, s, &o.objects, "to use to create the resource")
	o.objects.Selection.AddLabelFlag(fs)
	o.addFlags(cmd)
	fs.BoolVar(&o.isEdit, "edit", false, "Edit the API resource before creating")
	fs.StringVar(&o.raw, "raw", "", "Raw URI to POST to the server. Uses the transport specified by the kubeconfig file.")
	if s.IsNamed(cmd.Name()) {
		addGenerators(cmd, s)
	}
	return cmd
}

// addFlags adds the flags shared by create -f and the generators.
func (o *createOptions) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	o.write.AddDryRunFlag(fs)
	o.write.AddFieldManagerFlag(fs)
	o.write.AddValidateFlag(fs)
	o.output.AddFlags(fs)
	fs.BoolVar(&o.saveConfig, "save-config", false, "If true, the configuration of current object will be saved in its annotation, for kubectl apply. Otherwise, the annotation will be unchanged.")
}

func (o *createOptions) complete(s *command.State) error {
	if err := o.write.Complete(s.Errorf); err != nil {
		return err
	}
	return o.output.Complete(s.Out, o.write.DryRun)
}

func (o *createOptions) run(cmd *cobra.Command, s *command.State, args []string) error {
	if len(args) > 0 {
		return command.UsageError(cmd, "Unexpected args: %v", args)
	}
	if o.objects.Files.IsEmpty() {
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
		return s.Raw(ctx, http.MethodPost, o.raw, o.objects.Files.Paths[0])
	}
	objects, readErr := o.objects.Manifests(ctx, nil)
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

// createAll creates the objects. It returns readErr even if all objects were created.
func (o *createOptions) createAll(ctx context.Context, s *command.State, objects []*manifest.Object, readErr error) error {
	resolver, err := resource.NewResolver(ctx, s.Connection)
	if err != nil {
		return err
	}
	objects, err = installOrder(ctx, s, objects)
	if err != nil {
		return err
	}
	return eachManifestObject(ctx, s, "created", objects, readErr, func(obj *manifest.Object) error {
		found, err := resolver.Resolve(ctx, obj)
		if err != nil {
			return err
		}
		if o.saveConfig {
			found.Object.SetNamespace(found.Namespace)
			if err := command.SaveConfig(found.Object); err != nil {
				return command.SourceError("creating", found.Source, err)
			}
		}
		created, err := o.create(ctx, found)
		if err != nil {
			return command.SourceError("creating", found.Source, err)
		}
		return o.output.Object(created, "created")
	})
}

func (o *createOptions) create(ctx context.Context, t *resource.Info) (*unstructured.Object, error) {
	if o.write.DryRun == flags.DryRunClient {
		obj := t.Object.DeepCopy()
		obj.SetNamespace(t.Namespace)
		return obj, nil
	}
	return t.Resource.WithDefaults(o.write.Defaults()).Create(ctx, t.Object, nil)
}

// edit opens the editor on the objects and creates the saved objects. The file is kept if not all objects were created.
func (o *createOptions) edit(ctx context.Context, s *command.State, objects []*manifest.Object) error {
	format := print.Flags{Output: "yaml", ShowManagedFields: true}
	if o.output.Output == "json" {
		format.Output = "json"
	}
	var text strings.Builder
	printer, err := format.Printer(&text)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if err := printer.Object(obj.Object); err != nil {
			return err
		}
	}
	path, content, err := editor.New(s.Streams).Edit(ctx, "."+format.Output, editor.Header("")+text.String())
	if err != nil {
		return editor.KeepFile(s, path, err)
	}
	content = editor.WithoutHeader(content)
	switch {
	case strings.TrimSpace(content) == "":
		s.Errorf("Edit cancelled, saved file was empty.")
		return os.Remove(path)
	case content == text.String():
		s.Errorf("Edit cancelled, no changes made.")
		return os.Remove(path)
	}
	edited, err := manifest.Decode("edited-file", strings.NewReader(content))
	if err == nil && len(edited) == 0 {
		err = errors.New("no objects passed to create")
	}
	if err == nil {
		err = o.createAll(ctx, s, edited, nil)
	}
	if err != nil {
		return editor.KeepFile(s, path, err)
	}
	return os.Remove(path)
}

// validate rejects conflicting flags of create -f.
func (o *createOptions) validate() error {
	switch {
	case o.raw == "":
		return nil
	case o.isEdit:
		return errors.New("--raw and --edit are mutually exclusive")
	case len(o.objects.Files.Paths) != 1:
		return errors.New("--raw can only use a single local file or stdin")
	case o.objects.Selection.LabelSelector != "":
		return fmt.Errorf("--raw and --selector (-l) are mutually exclusive")
	}
	return command.ValidateRaw(o.raw, &o.objects.Files, o.output.Output)
}
