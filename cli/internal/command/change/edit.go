package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/change/editor"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

type editOptions struct {
	objects     resource.Finder
	write       flags.Write
	output      command.Output
	subresource string
}

func editCommand(s *command.State) *cobra.Command {
	o := &editOptions{}
	cmd := &cobra.Command{
		Use:   "edit (RESOURCE/NAME | -f FILENAME)",
		Short: "Edit a resource on the server",
		Long: "Edit objects of the server with the editor of KUBE_EDITOR or EDITOR. A change is validated by a dry run before it is " +
			"sent; if it is not valid, or others have changed the same lists, the editor opens again.",
		Example: "  anyctl edit svc/web\n  KUBE_EDITOR=nano anyctl edit deployment/web -o json\n  anyctl edit deployment/web --subresource=status",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	fs := cmd.Flags()
	o.objects.AllowTypes = true
	addFiles(fs, s, &o.objects, "to use to edit the resource")
	o.objects.Selection.AddLabelFlag(fs)
	o.objects.AddWhereFlag(fs)
	o.write.AddFieldManagerFlag(fs)
	o.write.AddValidateFlag(fs)
	o.output.Flags = *print.NewFlags()
	fs.StringVarP(&o.output.Output, "output", "o", "", "Format of the editor's file and of the changed objects. One of: (json, kyaml, yaml).")
	fs.BoolVar(&o.output.ShowManagedFields, "show-managed-fields", false, "If true, keep the managedFields in the file.")
	fs.StringVar(&o.subresource, "subresource", "", "If specified, edit will operate on the subresource of the requested object.")
	return cmd
}

// edited is an object in the editor.
type edited struct {
	target *resource.Info
	before *unstructured.Object // as shown by the editor
	after  *unstructured.Object // as saved by the user
	patch  *mergePatch
}

func (o *editOptions) run(ctx context.Context, s *command.State, args []string) error {
	if err := o.write.Complete(s.Errorf); err != nil {
		return err
	}
	if format := o.output.Output; !slices.Contains([]string{"", "json", "kyaml", "yaml"}, format) {
		return fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: json,kyaml,yaml", format)
	}
	if err := o.output.Complete(s.Out, flags.DryRunNone); err != nil {
		return err
	}
	var objects []*edited
	for t, err := range o.objects.Objects(ctx, args, true) {
		if err == nil {
			err = o.prepare(ctx, t)
		}
		if err != nil {
			return err
		}
		objects = append(objects, &edited{target: t, before: t.Object})
	}
	if len(objects) == 0 {
		return errors.New("edit cancelled, no objects found")
	}
	text, err := o.encode(objects, func(e *edited) *unstructured.Object { return e.before })
	if err != nil {
		return err
	}
	session := &editSession{options: o, state: s, editor: editor.New(s.Streams), objects: objects, text: text}
	return session.run(ctx)
}

// prepare reads the subresource, if any, and removes managed fields unless ShowManagedFields is set.
func (o *editOptions) prepare(ctx context.Context, t *resource.Info) error {
	t.Resource = t.Resource.WithDefaults(o.write.Defaults())
	if o.subresource != "" {
		t.Resource = t.Resource.Subresource(o.subresource)
		obj, err := t.Resource.Get(ctx, t.Name, nil)
		if err != nil {
			return err
		}
		t.Object = obj
	}
	if !o.output.ShowManagedFields {
		t.Object.SetManagedFields(nil)
	}
	return nil
}

// format returns the format of the file, yaml by default.
func (o *editOptions) format() string { return cmp.Or(o.output.Output, "yaml") }

func (o *editOptions) encode(objects []*edited, of func(*edited) *unstructured.Object) (string, error) {
	format := print.Flags{Output: o.format(), ShowManagedFields: true}
	var text strings.Builder
	printer, err := format.Printer(&text)
	if err != nil {
		return "", err
	}
	for _, e := range objects {
		if err := printer.Object(of(e)); err != nil {
			return "", err
		}
	}
	return text.String(), nil
}

// editSession opens the editor until the file is valid.
type editSession struct {
	options *editOptions
	state   *command.State
	editor  *editor.Editor
	objects []*edited // not yet changed
	text    string    // file content without comments
	reasons string    // errors shown when the editor reopens
	failed  int       // failed attempts
}

func (e *editSession) run(ctx context.Context) error {
	for {
		path, content, err := e.editor.Edit(ctx, "."+suffixOf(e.options.format()), editor.Header(e.reasons)+e.text)
		if err != nil {
			return editor.KeepFile(e.state, path, err)
		}
		content = editor.WithoutHeader(content)
		isUnchanged := content == e.text
		switch {
		case strings.TrimSpace(content) == "":
			e.state.Errorf("Edit cancelled, saved file was empty.")
			return os.Remove(path)
		case isUnchanged && e.failed > 0:
			return editor.KeepFile(e.state, path, errors.New("Edit cancelled, no valid changes were saved."))
		case isUnchanged:
			e.state.Errorf("Edit cancelled, no changes made.")
			return os.Remove(path)
		case ctx.Err() != nil:
			return editor.KeepFile(e.state, path, context.Cause(ctx))
		}
		e.text = content
		if err := e.save(ctx); err == nil {
			return os.Remove(path)
		} else if ctx.Err() != nil {
			return editor.KeepFile(e.state, path, err)
		}
		e.failed++
		if err := os.Remove(path); err != nil {
			return err
		}
	}
}

// save validates and sends the changes of the file. On failure it sets reasons.
func (e *editSession) save(ctx context.Context) error {
	changed, err := e.read()
	if err != nil {
		return e.fail("The edited file failed validation: "+err.Error(), err)
	}
	for _, c := range changed {
		if _, err := c.send(ctx, true); err != nil {
			return e.fail(notValid(c.target, err), err)
		}
	}
	for len(changed) > 0 {
		stored, err := changed[0].send(ctx, false)
		if err != nil {
			e.objects = changed
			text, encodeErr := e.options.encode(changed, func(c *edited) *unstructured.Object { return c.after })
			if encodeErr == nil {
				e.text = text
			}
			return e.fail(notValid(changed[0].target, err), err)
		}
		if err := e.options.output.Object(stored, "edited"); err != nil {
			return err
		}
		changed = changed[1:]
	}
	return nil
}

func (e *editSession) fail(reasons string, err error) error {
	e.reasons = reasons
	first, _, _ := strings.Cut(reasons, "\n")
	e.state.Errorf("error: %s", strings.TrimSuffix(first, ":"))
	return err
}

// notValid formats the error of a rejected object.
func notValid(t *resource.Info, err error) string {
	text := fmt.Sprintf("%s was not valid:\n", t)
	var status *apierrors.StatusError
	if errors.As(err, &status) && status.ErrStatus.Details != nil && len(status.ErrStatus.Details.Causes) > 0 {
		for _, cause := range status.ErrStatus.Details.Causes {
			text += fmt.Sprintf("* %s: %s\n", cause.Field, cause.Message)
		}
		return text
	}
	return text + "* " + command.ServerMessage(err)
}

// read returns the changed objects of the file.
func (e *editSession) read() ([]*edited, error) {
	docs, err := manifest.Decode("edited file", strings.NewReader(e.text))
	if err != nil {
		return nil, err
	}
	var changed []*edited
	for _, doc := range docs {
		original := e.find(doc.Object)
		if original == nil {
			return nil, fmt.Errorf("%s: %s %q is not one of the edited objects (apiVersion, kind, namespace and name cannot be changed)", doc.Position(), doc.GetKind(), doc.GetName())
		}
		original.after = doc.Object
		original.patch = newMergePatch(original.before.Object, doc.Object.Object)
		if original.patch.isEmpty() {
			if err := e.options.output.Object(doc.Object, "skipped"); err != nil {
				return nil, err
			}
			continue
		}
		changed = append(changed, original)
	}
	return changed, nil
}

func (e *editSession) find(obj *unstructured.Object) *edited {
	for _, candidate := range e.objects {
		before := candidate.before
		if before.GroupVersionKind() == obj.GroupVersionKind() && before.GetName() == obj.GetName() && before.GetNamespace() == obj.GetNamespace() {
			return candidate
		}
	}
	return nil
}

// send sends the change or its dry run. It is rejected if a replaced list was changed meanwhile.
func (e *edited) send(ctx context.Context, isDryRun bool) (*unstructured.Object, error) {
	opts := &metav1.PatchOptions{}
	if isDryRun {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	return e.patch.send(ctx, e.target, opts)
}

// suffixOf returns the file suffix for a format.
func suffixOf(format string) string {
	if format == "kyaml" {
		return "yaml"
	}
	return format
}
