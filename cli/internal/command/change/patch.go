package change

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/unstructured"
)

func patchTypes() map[string]types.PatchType {
	return map[string]types.PatchType{
		"json":      types.JSONPatchType,
		"merge":     types.MergePatchType,
		"strategic": types.StrategicMergePatchType,
	}
}

type patchOptions struct {
	objects                     resource.Finder
	write                       flags.Write
	output                      command.Output
	patch, patchFile, patchType string
	subresource                 string
}

func patchCommand(s *command.State) *cobra.Command {
	o := &patchOptions{}
	cmd := &cobra.Command{
		Use:     "patch (-f FILENAME | TYPE NAME) [-p PATCH|--patch-file FILE]",
		Short:   "Update fields of a resource",
		Long:    "Update fields of a resource using strategic merge patch, a JSON merge patch, or a JSON patch. Patches are JSON or YAML.",
		Example: "  anyctl patch node worker -p '{\"spec\":{\"unschedulable\":true}}'\n  anyctl patch deployment web --subresource=scale --type=merge -p '{\"spec\":{\"replicas\":2}}'",
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	fs := cmd.Flags()
	addFiles(fs, s, &o.objects, "identifying the resource to update")
	o.write.AddDryRunFlag(fs)
	o.write.AddFieldManagerFlag(fs)
	o.output.AddFlags(fs)
	fs.StringVarP(&o.patch, "patch", "p", "", "The patch to be applied to the resource JSON file.")
	fs.StringVar(&o.patchFile, "patch-file", "", "A file containing a patch to be applied to the resource.")
	fs.StringVar(&o.patchType, "type", "strategic", fmt.Sprintf("The type of patch being provided; one of %v", patchTypeNames()))
	fs.BoolVar(&o.objects.Local, "local", false, "If true, patch will operate on the content of the file, not the server-side resource. --type=strategic reads the schema of the kind.")
	fs.StringVar(&o.subresource, "subresource", "", "If specified, patch will operate on the subresource of the requested object.")
	return cmd
}

func patchTypeNames() []string { return slices.Sorted(maps.Keys(patchTypes())) }

func (o *patchOptions) complete(s *command.State) error {
	if err := o.write.Complete(s.Errorf); err != nil {
		return err
	}
	switch {
	case o.patch != "" && o.patchFile != "":
		return errors.New("cannot specify --patch and --patch-file together")
	case o.patch == "" && o.patchFile == "":
		return errors.New("must specify --patch or --patch-file containing the contents of the patch")
	case o.objects.Local && o.write.DryRun == flags.DryRunServer:
		return errors.New("cannot specify --local and --dry-run=server - did you mean --dry-run=client?")
	}
	if _, isKnown := patchTypes()[strings.ToLower(o.patchType)]; !isKnown {
		return fmt.Errorf("--type must be one of %v, not %q", patchTypeNames(), o.patchType)
	}
	return o.output.Complete(s.Out, o.write.DryRun)
}

// isLocal reports whether the patch is applied locally.
func (o *patchOptions) isLocal() bool {
	return o.objects.Local || o.write.DryRun == flags.DryRunClient
}

// body returns the patch as JSON.
func (o *patchOptions) body() ([]byte, error) {
	text := []byte(o.patch)
	if o.patchFile != "" {
		var err error
		if text, err = os.ReadFile(o.patchFile); err != nil {
			return nil, fmt.Errorf("unable to read patch file: %w", err)
		}
	}
	body, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("unable to parse %q: %w", o.patch, err)
	}
	return body, nil
}

func (o *patchOptions) run(ctx context.Context, s *command.State, args []string) error {
	if err := o.complete(s); err != nil {
		return err
	}
	body, err := o.body()
	if err != nil {
		return err
	}
	count := &command.Tally{Verb: "patched"}
	var errs []error
	for t, err := range o.objects.Objects(ctx, args, true) {
		if err == nil {
			err = o.patchOne(ctx, s, t, body)
		}
		if err == nil {
			count.Done++
			continue
		}
		errs = append(errs, err)
		if t != nil {
			count.Fail(t.String())
		}
	}
	if count.Done+len(errs) == 0 {
		return errors.New("no objects passed to patch")
	}
	return count.Report(s, errors.Join(errs...))
}

func (o *patchOptions) patchOne(ctx context.Context, s *command.State, t *resource.Info, body []byte) error {
	if o.isLocal() {
		patched, err := o.patchLocally(ctx, s, t, body)
		if err != nil {
			return err
		}
		return o.print(t.Object, patched)
	}
	resource := t.Resource.WithDefaults(o.write.Defaults())
	if o.subresource != "" {
		resource = resource.Subresource(o.subresource)
	}
	patchType := patchTypes()[strings.ToLower(o.patchType)]
	patched, err := resource.Patch(ctx, t.Name, patchType, body, &metav1.PatchOptions{})
	if apierrors.IsUnsupportedMediaType(err) {
		return fmt.Errorf("%s is not supported by %s: %s", patchType, t.Resource.APIResource().GVK, command.ServerMessage(err))
	}
	if err != nil {
		return err
	}
	return o.print(t.Object, patched)
}

// patchLocally returns the object with the patch. Only a strategic patch reads the kind's schema.
func (o *patchOptions) patchLocally(ctx context.Context, s *command.State, t *resource.Info, body []byte) (*unstructured.Object, error) {
	if strings.EqualFold(o.patchType, "strategic") {
		return s.MergeStrategic(ctx, t.Object, body)
	}
	before, err := unstructured.Encode(t.Object)
	if err != nil {
		return nil, err
	}
	var after []byte
	if strings.EqualFold(o.patchType, "json") {
		patch, decodeErr := jsonpatch.DecodePatch(body)
		if decodeErr != nil {
			return nil, decodeErr
		}
		after, err = patch.Apply(before)
	} else {
		after, err = jsonpatch.MergePatch(before, body)
	}
	if err != nil {
		return nil, err
	}
	return unstructured.Decode(after)
}

func (o *patchOptions) print(before, after *unstructured.Object) error {
	operation := "patched"
	if equalObjects(before, after) {
		operation = "patched (no change)"
	}
	return o.output.Object(after, operation)
}

// equalObjects reports whether a write changed nothing.
func equalObjects(before, after *unstructured.Object) bool {
	return before.GetResourceVersion() == after.GetResourceVersion() && reflect.DeepEqual(before.Object, after.Object)
}
