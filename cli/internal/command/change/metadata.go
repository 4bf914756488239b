package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/cli/progress"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/unstructured"
)

// changeCause is an annotation. annotate overwrites it even without --overwrite.
const changeCause = "kubernetes.io/change-cause"

// metadataField has the differences between label and annotate.
type metadataField struct {
	noun   string // "label"
	plural string // field of metadata
	parse  func(pairs []string) (set map[string]string, remove []string, err error)
	get    func(*unstructured.Object) map[string]string
	// overwriteError returns the error for keys with a different value. taken has their keys and current values.
	overwriteError func(taken [][2]string) error
	// operation returns the text of a result.
	operation func(added, removed int) string
}

type metadataOptions struct {
	field           metadataField
	objects         resource.Finder
	write           flags.Write
	output          command.Output
	overwrite, list bool
	resourceVersion string

	set    map[string]string
	remove []string
}

func labelCommand(s *command.State) *cobra.Command {
	o := &metadataOptions{field: metadataField{
		noun: "label", plural: "labels", parse: parseLabels, get: (*unstructured.Object).GetLabels,
		overwriteError: func(taken [][2]string) error {
			var errs []error
			for _, pair := range taken {
				errs = append(errs, fmt.Errorf("'%s' already has a value (%s), and --overwrite is false", pair[0], pair[1]))
			}
			return errors.Join(errs...)
		},
		operation: labelOperation,
	}}
	cmd := o.command(s)
	cmd.Long = fmt.Sprintf("Update the labels on a resource. A label key and value must begin with a letter or number, and may contain letters, numbers, hyphens, dots, and underscores, up to %d characters each. KEY- removes a label.", validation.LabelValueMaxLength)
	cmd.Example = "  anyctl label pods web tier=front\n  anyctl label --overwrite pods web tier=back\n  anyctl label pods --all tier-"
	return cmd
}

func annotateCommand(s *command.State) *cobra.Command {
	o := &metadataOptions{field: metadataField{
		noun: "annotation", plural: "annotations", parse: parseAnnotations, get: (*unstructured.Object).GetAnnotations,
		overwriteError: func(taken [][2]string) error {
			var texts []string
			for _, pair := range taken {
				texts = append(texts, fmt.Sprintf("'%s' already has a value (%s)", pair[0], pair[1]))
			}
			return fmt.Errorf("--overwrite is false but found the following declared annotation(s): %s", strings.Join(texts, "; "))
		},
		operation: func(int, int) string { return "annotated" },
	}}
	cmd := o.command(s)
	cmd.Long = "Update the annotations on one or more resources. KEY- removes an annotation."
	cmd.Example = "  anyctl annotate pods web description='my frontend'\n  anyctl annotate --overwrite pods web description=other\n  anyctl annotate pods web description-"
	return cmd
}

func (o *metadataOptions) command(s *command.State) *cobra.Command {
	name := strings.TrimSuffix(o.field.noun, "ation")
	if name == "annot" {
		name = "annotate"
	}
	cmd := &cobra.Command{
		Use:   name + " [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version]",
		Short: fmt.Sprintf("Update the %s on a resource", o.field.plural),
		RunE:  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	fs := cmd.Flags()
	addFiles(fs, s, &o.objects, "identifying the resource to update the "+o.field.plural)
	o.objects.Selection.AddFlags(fs)
	o.objects.AddAllFlag(fs)
	o.objects.AddWhereFlag(fs)
	o.write.AddDryRunFlag(fs)
	o.write.AddFieldManagerFlag(fs)
	o.output.AddFlags(fs)
	fs.BoolVar(&o.overwrite, "overwrite", false, fmt.Sprintf("If true, allow %s to be overwritten, otherwise reject updates that overwrite existing ones.", o.field.plural))
	fs.BoolVar(&o.list, "list", false, fmt.Sprintf("If true, display the %s for a given resource.", o.field.plural))
	fs.BoolVar(&o.objects.Local, "local", false, fmt.Sprintf("If true, %s will NOT contact api-server but run locally.", name))
	fs.StringVar(&o.resourceVersion, "resource-version", "", "If non-empty, the update will only succeed if this is the current resource-version for the object. Only valid when specifying a single resource.")
	return cmd
}

// complete parses arguments and flags. Objects are printed to out.
func (o *metadataOptions) complete(s *command.State, out io.Writer, args []string) (resources []string, err error) {
	if err := o.write.Complete(s.Errorf); err != nil {
		return nil, err
	}
	resources, pairs, err := splitPairs(args, o.field.noun)
	if err != nil {
		return nil, err
	}
	if o.set, o.remove, err = o.field.parse(pairs); err != nil {
		return nil, err
	}
	hasFiles := !o.objects.Files.IsEmpty()
	switch {
	case o.list && o.output.Output != "":
		return nil, errors.New("--list and --output may not be specified together")
	case o.objects.Local && o.write.DryRun == flags.DryRunServer:
		return nil, errors.New("cannot specify --local and --dry-run=server - did you mean --dry-run=client?")
	case o.objects.Local && len(resources) > 0:
		return nil, errors.New("can only use local files by -f pod.yaml or --filename=pod.json when --local=true is set")
	case o.objects.Local && !hasFiles:
		return nil, errors.New("one or more files must be specified as -f pod.yaml or --filename=pod.json")
	case len(resources) == 0 && !hasFiles:
		return nil, errors.New("one or more resources must be specified as <resource> <name> or <resource>/<name>")
	case len(o.set)+len(o.remove) == 0 && !o.list:
		return nil, fmt.Errorf("at least one %s update is required", o.field.noun)
	}
	if err := checkAll(o.objects.All, o.objects.Selection.LabelSelector, o.objects.Selection.FieldSelector); err != nil {
		return nil, err
	}
	return resources, o.output.Complete(out, o.write.DryRun)
}

func (o *metadataOptions) run(ctx context.Context, s *command.State, args []string) error {
	display := progress.New(s.Err)
	defer display.Close()
	resources, err := o.complete(s, display.Above(s.Out), args)
	if err != nil {
		return err
	}
	isOne := o.objects.Files.IsEmpty() && isOneObject(resources)
	if !isOne && o.resourceVersion != "" {
		return errors.New("--resource-version may only be used with a single resource")
	}
	count := &command.Tally{Verb: "changed"}
	var errs []error
	for t, err := range o.objects.Objects(ctx, resources, true) {
		if err == nil {
			err = o.visit(ctx, t, isOne)
		}
		if err == nil {
			count.Done++
			display.Update("change", "%d objects changed", count.Done)
			continue
		}
		errs = append(errs, err)
		if t != nil {
			count.Fail(t.String())
		}
	}
	display.Close()
	return count.Report(s, errors.Join(errs...))
}

// isOneObject reports whether arguments name a single object.
func isOneObject(args []string) bool {
	if len(args) == 1 {
		return strings.Contains(args[0], "/")
	}
	return len(args) == 2 && !strings.Contains(args[0], ",") && !strings.Contains(args[0], "/")
}

func (o *metadataOptions) visit(ctx context.Context, t *resource.Info, isOne bool) error {
	if o.list && len(o.set)+len(o.remove) == 0 {
		return o.printList(t.Object, isOne)
	}
	changes, added, removed, err := o.changes(t.Object)
	if err != nil {
		return err
	}
	changed := t.Object
	switch {
	case o.write.DryRun == flags.DryRunClient || o.objects.Local || o.list:
		changed = o.changeLocally(t.Object)
	case len(changes) > 0:
		if changed, err = o.patch(ctx, t, changes); err != nil {
			return err
		}
	}
	if o.list {
		return o.printList(changed, isOne)
	}
	return o.output.Object(changed, o.field.operation(added, removed))
}

// changes returns a merge patch of the labels or annotations, with nil for removed keys, and counts the changes.
func (o *metadataOptions) changes(obj *unstructured.Object) (changes map[string]any, added, removed int, err error) {
	current := o.field.get(obj)
	changes = map[string]any{}
	var taken [][2]string
	for _, key := range slices.Sorted(maps.Keys(o.set)) {
		value, found := current[key]
		if found && value != o.set[key] && !o.overwrite && (key != changeCause || o.field.noun == "label") {
			taken = append(taken, [2]string{key, value})
		}
		if !found || value != o.set[key] {
			changes[key] = o.set[key]
			added++
		}
	}
	if len(taken) > 0 {
		return nil, 0, 0, o.field.overwriteError(taken)
	}
	for _, key := range o.remove {
		if _, found := current[key]; found {
			changes[key] = nil
			removed++
			continue
		}
		if o.field.noun == "label" && o.write.DryRun != flags.DryRunClient && !o.objects.Local && !o.list {
			if _, err := fmt.Fprintf(o.output.Out, "label %q not found.\n", key); err != nil {
				return nil, 0, 0, err
			}
		}
	}
	return changes, added, removed, nil
}

func (o *metadataOptions) patch(ctx context.Context, t *resource.Info, changes map[string]any) (*unstructured.Object, error) {
	metadata := map[string]any{o.field.plural: changes}
	if o.resourceVersion != "" {
		metadata["resourceVersion"] = o.resourceVersion
	}
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, err
	}
	return t.Resource.WithDefaults(o.write.Defaults()).Patch(ctx, t.Name, types.MergePatchType, body, nil)
}

func (o *metadataOptions) changeLocally(obj *unstructured.Object) *unstructured.Object {
	changed := obj.DeepCopy()
	values := o.field.get(changed)
	if values == nil {
		values = map[string]string{}
	}
	maps.Copy(values, o.set)
	for _, key := range o.remove {
		delete(values, key)
	}
	if o.field.noun == "label" {
		changed.SetLabels(values)
	} else {
		changed.SetAnnotations(values)
	}
	return changed
}

func (o *metadataOptions) printList(obj *unstructured.Object, isOne bool) error {
	var text strings.Builder
	indent := ""
	if !isOne {
		indent = " "
		kind := obj.GroupVersionKind()
		fmt.Fprintf(&text, "Listing %s for %s.%s/%s:\n", o.field.plural, kind.Kind, kind.Group, printable.LineFor(o.output.Out, obj.GetName()))
	}
	values := o.field.get(obj)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&text, "%s%s=%s\n", indent, key, values[key])
	}
	_, err := fmt.Fprint(o.output.Out, text.String())
	return err
}

func labelOperation(added, removed int) string {
	switch {
	case added > 0 && removed > 0:
		return "modified"
	case added > 0:
		return "labeled"
	case removed > 0:
		return "unlabeled"
	}
	return "not labeled"
}

// splitPairs splits arguments into objects and the pairs KEY=VALUE or KEY- behind them.
func splitPairs(args []string, noun string) (resources, pairs []string, err error) {
	for _, arg := range args {
		isPair := strings.Contains(arg, "=") && arg[0] != '=' || strings.HasSuffix(arg, "-") && arg != "-"
		switch {
		case isPair:
			pairs = append(pairs, arg)
		case len(pairs) > 0:
			return nil, nil, fmt.Errorf("all resources must be specified before %s changes: %s", noun, arg)
		default:
			resources = append(resources, arg)
		}
	}
	return resources, pairs, nil
}

func parseLabels(pairs []string) (set map[string]string, remove []string, err error) {
	set = map[string]string{}
	for _, pair := range pairs {
		key, value, hasValue := strings.Cut(pair, "=")
		if !hasValue {
			remove = append(remove, strings.TrimSuffix(pair, "-"))
			continue
		}
		if strings.Contains(value, "=") {
			return nil, nil, fmt.Errorf("invalid label spec: %v", pair)
		}
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			return nil, nil, fmt.Errorf("invalid label value: %q: %s", pair, strings.Join(problems, ";"))
		}
		set[key] = value
	}
	for _, key := range remove {
		if _, found := set[key]; found {
			return nil, nil, errors.New("can not both modify and remove a label in the same command")
		}
	}
	return set, remove, nil
}

func parseAnnotations(pairs []string) (set map[string]string, remove []string, err error) {
	set = map[string]string{}
	var both []string
	for _, pair := range pairs {
		if key, value, hasValue := strings.Cut(pair, "="); hasValue {
			set[key] = value
		} else {
			remove = append(remove, strings.TrimSuffix(pair, "-"))
		}
	}
	for _, key := range remove {
		if _, found := set[key]; found {
			both = append(both, key)
		}
	}
	if len(both) > 0 {
		return nil, nil, fmt.Errorf("can not both modify and remove the following annotation(s) in the same command: %s", strings.Join(both, ", "))
	}
	return set, remove, nil
}
