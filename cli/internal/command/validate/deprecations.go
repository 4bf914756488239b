package validate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/dynamic"
)

// deprecationsFile is a file beside saved schemas.
const deprecationsFile = "deprecations.json"

// deprecations has a server's warnings about deprecated versions of kinds.
type deprecations struct {
	// Warnings has the server's texts by kind, such as "v1 Endpoints". The text of a current version is empty.
	Warnings map[string]string `json:"warnings"`
	// Unknown has errors of the server by kind.
	Unknown map[string]string `json:"unknown,omitempty"`

	client *dynamic.Client // asked for further kinds; nil of a folder
}

func newDeprecations(client *dynamic.Client) *deprecations {
	return &deprecations{Warnings: map[string]string{}, Unknown: map[string]string{}, client: client}
}

// readDeprecations reads the deprecations in a folder of schemas. A folder may have none.
func readDeprecations(dir string) (*deprecations, error) {
	d := newDeprecations(nil)
	data, err := os.ReadFile(filepath.Join(dir, deprecationsFile)) //nolint:gosec // the user's folder
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err == nil {
		err = json.Unmarshal(data, d)
	}
	if err != nil {
		return nil, fmt.Errorf("read deprecations: %w", err)
	}
	return d, nil
}

// saveDeprecations writes the deprecations of all kinds with the verb list to a folder of schemas.
func saveDeprecations(ctx context.Context, client *dynamic.Client, dir string) error {
	snapshot, err := client.Discovery().Snapshot(ctx)
	if err != nil {
		return err
	}
	d := newDeprecations(client)
	for resource := range snapshot.Resources() {
		if slices.Contains(resource.Verbs, "list") {
			d.read(ctx, client.ForAPIResource(resource))
		}
	}
	data, err := json.MarshalIndent(d, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, deprecationsFile), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("save deprecations: %w", err)
	}
	return ctx.Err()
}

// of returns the warning about a kind's version, or "". unknown is the text about an unknown deprecation, or "".
func (d *deprecations) of(ctx context.Context, gvk kschema.GroupVersionKind) (warning, unknown string) {
	key := keyOf(gvk)
	_, isKnown := d.Warnings[key]
	switch {
	case isKnown || d.Unknown[key] != "":
	case d.client == nil:
		return "", "whether the version is deprecated: the folder of schemas does not say it (save it with --save-schemas)"
	default:
		if resource, err := d.client.ForKind(ctx, gvk); err == nil {
			d.read(ctx, resource)
		} else {
			d.Unknown[key] = err.Error()
		}
	}
	if reason := d.Unknown[key]; reason != "" {
		return "", "whether the version is deprecated: " + reason
	}
	return d.Warnings[key], ""
}

// read asks the server about a resource.
func (d *deprecations) read(ctx context.Context, resource *dynamic.Resource) {
	key := keyOf(resource.APIResource().GVK)
	warning, err := command.Deprecation(ctx, resource)
	if err != nil && warning == "" {
		d.Unknown[key] = err.Error()
		return
	}
	d.Warnings[key] = warning
}

// keyOf returns a kind as warnings of servers name it: apps/v1 Deployment.
func keyOf(gvk kschema.GroupVersionKind) string { return gvk.GroupVersion().String() + " " + gvk.Kind }
