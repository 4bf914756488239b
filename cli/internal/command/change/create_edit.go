package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/change/editor"
	"github.com/anykind/anykind/cli/manifest"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/unstructured"
)

// lastApplied is the annotation with the manifest of an object, from which kubectl apply computes its changes.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// saveConfig writes the object to its annotation.
func saveConfig(obj *unstructured.Object) error {
	annotations := obj.GetAnnotations()
	delete(annotations, lastApplied)
	if annotations == nil {
		annotations = map[string]string{}
	}
	obj.SetAnnotations(annotations)
	data, err := json.Marshal(obj.Object)
	if err != nil {
		return err
	}
	annotations[lastApplied] = string(data) + "\n"
	obj.SetAnnotations(annotations)
	return nil
}

// edit opens the editor on the objects and creates what the user has saved. What was not created stays in the file.
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
		return keepFile(s, path, err)
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
		return keepFile(s, path, err)
	}
	return os.Remove(path)
}

// keepFile reports err, and where the file of an editor is.
func keepFile(s *command.State, path string, err error) error {
	if path == "" {
		return err
	}
	code := command.Report(s.Err, err)
	s.Errorf("A copy of your changes has been stored to %q", path)
	return &command.ExitError{Code: code}
}

// validate rejects flags of create -f that exclude each other.
func (o *createOptions) validate() error {
	switch {
	case o.raw == "":
		return nil
	case o.isEdit:
		return errors.New("--raw and --edit are mutually exclusive")
	case len(o.objects.files.Paths) != 1:
		return errors.New("--raw can only use a single local file or stdin")
	case o.objects.selection.LabelSelector != "":
		return fmt.Errorf("--raw and --selector (-l) are mutually exclusive")
	}
	return command.ValidateRaw(o.raw, &o.objects.files, o.output.Output)
}
