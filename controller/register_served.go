package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// servedVersion is what a definition says of one version, as far as a handle knows it.
type servedVersion struct {
	kind         schema.GroupVersionKind
	subresources []string
}

// served waits until everything that a definition says works: the server takes a moment after it is established.
func served(ctx context.Context, client *dynamic.Client, definition *unstructured.Object) (*dynamic.Resource, error) {
	versions, err := versionsOf(definition)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		lacking, err := lackingOf(ctx, client, versions)
		if err == nil && lacking == "" {
			return client.Kind(ctx, schema.GroupVersionKind{Group: versions[0].kind.Group, Kind: versions[0].kind.Kind})
		}
		if err != nil && time.Since(began) > troubled {
			return nil, err
		}
		if ended := retry.Sleep(ctx, retry.Jitter(50*time.Millisecond)); ended != nil {
			return nil, fmt.Errorf("the server does not serve version %s yet: %w", lacking, ended)
		}
	}
}

// troubled is how long the server may fail on what is only just there.
const troubled = 5 * time.Second

// lackingOf names a version that does not work yet, or "".
func lackingOf(ctx context.Context, client *dynamic.Client, versions []servedVersion) (string, error) {
	if _, err := client.Discovery().Refresh(ctx); err != nil {
		return versions[0].kind.Version, err
	}
	for _, version := range versions {
		if works, err := version.works(ctx, client); err != nil || !works {
			return version.kind.Version, err
		}
	}
	return "", nil
}

func versionsOf(definition *unstructured.Object) (all []servedVersion, err error) {
	text := func(fields ...string) string {
		value, _, wrong := unstructured.Get[string](definition, fields...)
		if wrong != nil {
			err = wrong
		}
		return value
	}
	gk := schema.GroupKind{Group: text("spec", "group"), Kind: text("spec", "names", "kind")}
	entries, _, wrong := unstructured.Get[[]any](definition, "spec", "versions")
	if wrong != nil {
		err = wrong
	}
	for _, one := range entries {
		entry, _ := one.(map[string]any)
		name, _ := entry["name"].(string)
		if entry["served"] != true {
			continue
		}
		version := servedVersion{kind: gk.WithVersion(name)}
		subresources, _ := entry["subresources"].(map[string]any)
		for sub := range subresources {
			version.subresources = append(version.subresources, sub)
		}
		all = append(all, version)
	}
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("the definition has no version that is served")
	}
	return all, err
}

// works tells if discovery knows the version with its subresources, and requests find it.
func (v servedVersion) works(ctx context.Context, client *dynamic.Client) (bool, error) {
	of, err := client.Kind(ctx, v.kind)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, name := range v.subresources {
		if _, known := of.Mapping().Subresource(name); !known {
			return false, nil
		}
	}
	// Not a list, which might call a conversion webhook that is not there yet.
	_, err = of.Get(ctx, "none", nil)
	switch {
	case retry.IsObjectNotFound(err), apierrors.IsForbidden(err): // what is forbidden may be there
		return true, nil
	case retry.IsPathNotFound(err):
		return false, nil
	}
	return err == nil, err
}
