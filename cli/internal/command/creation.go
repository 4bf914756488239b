package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// Creation creates an object that is generated from flags, and prints it.
type Creation struct {
	Write  flags.Write
	Output Output
	// SaveConfig sets the annotation LastApplied.
	SaveConfig bool
}

// AddFlags defines --dry-run, --field-manager, --save-config, -o and the flags of its formats.
func (c *Creation) AddFlags(fs *pflag.FlagSet) {
	c.Write.AddDryRunFlag(fs)
	c.Write.AddFieldManagerFlag(fs)
	c.Output.AddFlags(fs)
	fs.BoolVar(&c.SaveConfig, "save-config", false, "If true, the configuration of current object will be saved in its annotation, for kubectl apply. Otherwise, the annotation will be unchanged.")
}

// Complete parses the values of the flags.
func (c *Creation) Complete(s *State) error {
	if err := c.Write.Complete(s.Errorf); err != nil {
		return err
	}
	return c.Output.Complete(s.Out, c.Write.DryRun)
}

// Create returns the created object, and for --dry-run=client the object itself with the namespace of --namespace. The resource is nil
// for --dry-run=client.
func (c *Creation) Create(ctx context.Context, s *State, obj *unstructured.Object) (*unstructured.Object, *dynamic.Resource, error) {
	if c.Write.DryRun == flags.DryRunClient {
		if s.Connection.NamespaceFlag != "" {
			obj.SetNamespace(s.Connection.NamespaceFlag)
		}
		return obj, nil, nil
	}
	if c.SaveConfig {
		if err := SaveConfig(obj); err != nil {
			return nil, nil, err
		}
	}
	client, err := s.Client(ctx)
	if err != nil {
		return nil, nil, err
	}
	resource, err := client.ForKind(ctx, obj.GroupVersionKind())
	if err != nil {
		return nil, nil, err
	}
	created, err := resource.WithDefaults(c.Write.Defaults()).Create(ctx, obj, nil)
	return created, resource, err
}

// Overrides has the values of --overrides and --override-type.
type Overrides struct{ text, kind string }

// AddFlags defines the flags.
func (o *Overrides) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.text, "overrides", "", "An inline JSON override for the generated object. If this is non-empty, it is used to override the generated object. Requires that the object supply a valid apiVersion field.")
	fs.StringVar(&o.kind, "override-type", "merge", "The method used to override the generated object: json, merge, or strategic.")
}

// Apply returns the object with the overrides.
func (o *Overrides) Apply(ctx context.Context, s *State, obj *unstructured.Object) (*unstructured.Object, error) {
	if o.text == "" {
		return obj, nil
	}
	patch, err := yaml.YAMLToJSON([]byte(o.text))
	if err != nil {
		return nil, fmt.Errorf("--overrides: %w", err)
	}
	before, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, err
	}
	var after []byte
	switch o.kind {
	case "json":
		operations, decodeErr := jsonpatch.DecodePatch(patch)
		if decodeErr != nil {
			return nil, fmt.Errorf("--overrides: %w", decodeErr)
		}
		after, err = operations.Apply(before)
	case "merge", "":
		after, err = jsonpatch.MergePatch(before, patch)
	case "strategic":
		return s.MergeStrategic(ctx, obj, patch)
	default:
		return nil, fmt.Errorf("invalid override type: %s", o.kind)
	}
	if err != nil {
		return nil, fmt.Errorf("--overrides: %w", err)
	}
	return unstructured.Decode(after)
}

// ParseLabels parses KEY=VALUE,… to a field of an object.
func ParseLabels(text string) (map[string]any, error) {
	labels := map[string]any{}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, found := strings.Cut(pair, "=")
		if !found || strings.Contains(value, "=") {
			return nil, fmt.Errorf("unexpected label spec: %s", pair)
		}
		if key == "" {
			return nil, errors.New("unexpected empty label key")
		}
		labels[key] = value
	}
	return labels, nil
}
