// Package lastapplied has the commands for the annotation of kubectl apply: view-last-applied, set-last-applied and
// edit-last-applied.
package lastapplied

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/unstructured"
)

// Commands returns the subcommands of apply.
func Commands(s *command.State) []*cobra.Command {
	return []*cobra.Command{viewCommand(s), setCommand(s), editCommand(s)}
}

func viewCommand(s *command.State) *cobra.Command {
	objects := &resource.Finder{Connection: s.Connection, AllowTypes: true}
	format := "yaml"
	cmd := &cobra.Command{
		Use:     "view-last-applied (TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME)",
		Short:   "View the latest last-applied-configuration annotations of a resource/object",
		Example: "  anyctl apply view-last-applied deployment/web\n  anyctl apply view-last-applied -f deploy.yaml -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return view(cmd, s, objects, args, format)
		},
	}
	fs := cmd.Flags()
	objects.Files.In = s.In
	objects.Files.AddFlags(fs, "that contains the last-applied-configuration annotations")
	objects.Selection.AddLabelFlag(fs)
	fs.BoolVar(&objects.All, "all", false, "Select all resources in the namespace of the specified resource types")
	fs.StringVarP(&format, "output", "o", format, "Output format. Must be one of (yaml, json)")
	return cmd
}

func view(cmd *cobra.Command, s *command.State, objects *resource.Finder, args []string, format string) error {
	var configurations []string
	for info, err := range objects.Objects(cmd.Context(), args, true) {
		if err != nil {
			return err
		}
		text := info.Object.GetAnnotations()[command.LastApplied]
		if text == "" {
			return fmt.Errorf("no last-applied-configuration annotation found on resource: %s (apply set-last-applied --create-annotation creates it)", info.Name)
		}
		configurations = append(configurations, text)
	}
	for _, text := range configurations {
		shown, err := formatted(text, format)
		if err != nil {
			return err
		}
		if shown == "" {
			return command.UsageError(cmd, "Unexpected -o output mode: %s, the flag 'output' must be one of yaml|json", format)
		}
		if _, err := io.WriteString(s.Out, shown); err != nil {
			return err
		}
	}
	return nil
}

// formatted returns a configuration as YAML or JSON, or "" for any further format.
func formatted(text, format string) (string, error) {
	switch format {
	case "json":
		var indented bytes.Buffer
		err := json.Indent(&indented, []byte(text), "", "  ")
		return indented.String(), err
	case "yaml":
		converted, err := yaml.JSONToYAML([]byte(text))
		return string(converted), err
	}
	return "", nil
}

type setOptions struct {
	write   flags.Write
	output  command.Output
	objects resource.Finder
	// create sets a missing annotation of objects.
	create bool
}

func setCommand(s *command.State) *cobra.Command {
	o := &setOptions{}
	cmd := &cobra.Command{
		Use:     "set-last-applied -f FILENAME",
		Short:   "Set the last-applied-configuration annotation on a live object to match the contents of a file",
		Long:    "Set the annotation last-applied-configuration to the contents of a file, as kubectl apply would. Nothing else of the object is changed.",
		Example: "  anyctl apply set-last-applied -f deploy.yaml\n  anyctl apply set-last-applied -f deploy.yaml --create-annotation",
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	fs := cmd.Flags()
	o.objects.Connection = s.Connection
	o.objects.Files.In = s.In
	o.objects.Files.AddFlags(fs, "that contains the last-applied-configuration annotations")
	o.write.AddDryRunFlag(fs)
	o.output.AddFlags(fs)
	fs.BoolVar(&o.create, "create-annotation", false, "Will create 'last-applied-configuration' annotations if current objects doesn't have one")
	return cmd
}

// change is a new value of an object's annotation.
type change struct {
	info  *resource.Info
	value string
}

func (o *setOptions) run(ctx context.Context, s *command.State) error {
	if err := o.write.Complete(s.Errorf); err != nil {
		return err
	}
	if err := o.output.Complete(s.Out, o.write.DryRun); err != nil {
		return err
	}
	changes, err := o.changes(ctx, s)
	if err != nil {
		return err
	}
	for _, c := range changes {
		stored := c.info.Object
		if o.write.DryRun != flags.DryRunClient {
			if stored, err = patch(ctx, c.info, c.value, &o.write); err != nil {
				return err
			}
		}
		if err := o.output.Object(stored, "configured"); err != nil {
			return err
		}
	}
	return nil
}

// changes reads all objects before the first is changed.
func (o *setOptions) changes(ctx context.Context, s *command.State) ([]change, error) {
	var changes []change
	for info, err := range o.objects.Objects(ctx, nil, false) {
		if err != nil {
			return nil, err
		}
		if info.Namespace != "" {
			info.Object.SetNamespace(info.Namespace)
		}
		value, err := command.Configuration(info.Object)
		if err != nil {
			return nil, err
		}
		if info.Object, err = info.Resource.Get(ctx, info.Name, nil); err != nil {
			return nil, err
		}
		stored, exists := info.Object.GetAnnotations()[command.LastApplied]
		switch {
		case !exists && !o.create:
			return nil, fmt.Errorf("no last-applied-configuration annotation found on resource: %s, to create the annotation, run the command with --create-annotation", info.Name)
		case strings.TrimSpace(stored) == strings.TrimSpace(value):
			if err := s.Printf("set-last-applied %s: no changes required.\n", info.Name); err != nil {
				return nil, err
			}
		default:
			changes = append(changes, change{info, value})
		}
	}
	if len(changes) == 0 && o.objects.Files.IsEmpty() {
		return nil, errors.New("must specify one of -f and -k")
	}
	return changes, nil
}

// patch sets the annotation of an object.
func patch(ctx context.Context, info *resource.Info, value string, write *flags.Write) (*unstructured.Object, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{command.LastApplied: value}}})
	if err != nil {
		return nil, err
	}
	return info.Resource.WithDefaults(write.Defaults()).Patch(ctx, info.Name, types.MergePatchType, body, nil)
}
