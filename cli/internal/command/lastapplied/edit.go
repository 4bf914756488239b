package lastapplied

import (
	"context"
	"errors"
	"fmt"
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

type editOptions struct {
	objects resource.Finder
	write   flags.Write
	output  command.Output
}

func editCommand(s *command.State) *cobra.Command {
	o := &editOptions{}
	cmd := &cobra.Command{
		Use:     "edit-last-applied (RESOURCE/NAME | -f FILENAME)",
		Short:   "Edit latest last-applied-configuration annotations of a resource/object",
		Long:    "Edit the annotations last-applied-configuration with the editor of KUBE_EDITOR or EDITOR. Nothing else of the objects is changed.",
		Example: "  anyctl apply edit-last-applied deployment/web\n  anyctl apply edit-last-applied -f deploy.yaml -o json",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	fs := cmd.Flags()
	o.objects.Connection = s.Connection
	o.objects.AllowTypes = true
	o.objects.Files.In = s.In
	o.objects.Files.AddFlags(fs, "to use to edit the resource")
	o.write.AddFieldManagerFlag(fs)
	o.write.AddValidateFlag(fs)
	o.output.Flags = *print.NewFlags()
	fs.StringVarP(&o.output.Output, "output", "o", "", "Format of the editor's file and of the changed objects. One of: (json, yaml).")
	fs.BoolVar(&o.output.ShowManagedFields, "show-managed-fields", false, "If true, keep the managedFields when printing objects.")
	return cmd
}

// configuration is an annotation in the editor.
type configuration struct {
	info *resource.Info
	obj  *unstructured.Object
}

func (o *editOptions) run(ctx context.Context, s *command.State, args []string) error {
	if err := o.write.Complete(s.Errorf); err != nil {
		return err
	}
	format := "yaml"
	switch o.output.Output {
	case "", "yaml":
	case "json":
		format = "json"
	default:
		return fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: json,yaml", o.output.Output)
	}
	if err := o.output.Complete(s.Out, flags.DryRunNone); err != nil {
		return err
	}
	before, err := o.read(ctx, args)
	if err != nil {
		return err
	}
	text, err := encode(before, format)
	if err != nil {
		return err
	}
	path, content, err := editor.New(s.Streams).Edit(ctx, "."+format, editor.Header("")+text)
	if err != nil {
		return editor.KeepFile(s, path, err)
	}
	content = editor.WithoutHeader(content)
	switch {
	case strings.TrimSpace(content) == "":
		s.Errorf("Edit cancelled, saved file was empty.")
		return os.Remove(path)
	case content == text:
		s.Errorf("Edit cancelled, no changes made.")
		return os.Remove(path)
	}
	if err := o.save(ctx, before, content); err != nil {
		return editor.KeepFile(s, path, err)
	}
	return os.Remove(path)
}

// read returns the configurations of the objects with the annotation.
func (o *editOptions) read(ctx context.Context, args []string) ([]configuration, error) {
	var all []configuration
	for info, err := range o.objects.Objects(ctx, args, true) {
		if err != nil {
			return nil, err
		}
		text := info.Object.GetAnnotations()[command.LastApplied]
		if text == "" {
			continue
		}
		obj, err := unstructured.Decode([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%s: annotation %s: %w", info, command.LastApplied, err)
		}
		all = append(all, configuration{info, obj})
	}
	if len(all) == 0 {
		return nil, errors.New("no last-applied-configuration annotation found on resources, to create the annotation, use command `anyctl apply set-last-applied --create-annotation`")
	}
	return all, nil
}

func encode(all []configuration, format string) (string, error) {
	var text strings.Builder
	flags := print.Flags{Output: format, ShowManagedFields: true}
	printer, err := flags.Printer(&text)
	if err != nil {
		return "", err
	}
	for _, c := range all {
		if err := printer.Object(c.obj); err != nil {
			return "", err
		}
	}
	return text.String(), nil
}

// save validates the whole file, and stores the changed configurations.
func (o *editOptions) save(ctx context.Context, before []configuration, content string) error {
	edited, err := manifest.Decode("edited-file", strings.NewReader(content))
	if err != nil {
		return fmt.Errorf("The edited file failed validation: %w", err)
	}
	var changes []change
	for _, obj := range edited {
		c := find(before, obj.Object)
		if c == nil {
			return fmt.Errorf("%s: %s %q is not one of the edited objects (apiVersion, kind, namespace and name cannot be changed)", obj.Position(), obj.GetKind(), obj.GetName())
		}
		value, err := command.Configuration(obj.Object)
		if err != nil {
			return err
		}
		old, err := command.Configuration(c.obj)
		if err != nil {
			return err
		}
		if value != old {
			changes = append(changes, change{c.info, value})
		}
	}
	for _, c := range changes {
		stored, err := patch(ctx, c.info, c.value, &o.write)
		if err != nil {
			return err
		}
		if err := o.output.Object(stored, "edited"); err != nil {
			return err
		}
	}
	return nil
}

func find(all []configuration, obj *unstructured.Object) *configuration {
	for i := range all {
		before := all[i].obj
		if before.GroupVersionKind() == obj.GroupVersionKind() && before.GetName() == obj.GetName() && before.GetNamespace() == obj.GetNamespace() {
			return &all[i]
		}
	}
	return nil
}
