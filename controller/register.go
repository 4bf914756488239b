package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
)

var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// RegisterCRDs applies the CustomResourceDefinitions of a file, YAML or JSON with one or more documents. It returns a handle on
// each resource, in the file's order and the server's preferred version. The handles work at once: RegisterCRDs waits until the
// server has accepted the names, serves every version and lists them in discovery.
//
// Definitions are applied by server-side apply with opts. nil opts mean the field manager "anykind" with Force: it takes over the
// file's fields from their managers, and keeps fields not in the file. An existing definition is updated to the file, and not
// written if it is equal. Nothing is applied unless the whole file can be read and contains only definitions of
// apiextensions.k8s.io/v1.
//
// ctx is the timeout. A name conflict with an existing definition is an error 3 seconds after the server reports it. The verbs
// patch, list and watch on definitions are needed. See
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/.
func RegisterCRDs(ctx context.Context, client *dynamic.Client, file []byte, opts *metav1.ApplyOptions) ([]*dynamic.Resource, error) {
	definitions, err := decodeCRDs(file)
	if err != nil {
		return nil, fmt.Errorf("register definitions: %w", err)
	}
	if opts == nil {
		opts = &metav1.ApplyOptions{FieldManager: "anykind", Force: true}
	}
	crds, err := client.ForKind(ctx, crdKind)
	if err != nil {
		return nil, fmt.Errorf("register definitions: %w", retry.WithContextError(ctx, err))
	}
	for i, definition := range definitions {
		if definitions[i], err = crds.Apply(ctx, definition, opts); err != nil {
			return nil, fmt.Errorf("register %s: %w", definition.GetName(), retry.WithContextError(ctx, err))
		}
	}
	resources := make([]*dynamic.Resource, len(definitions))
	for i, definition := range definitions {
		if err = waitEstablished(ctx, crds, definition.GetName()); err == nil {
			resources[i], err = waitServed(ctx, client, definition)
		}
		if err != nil {
			return nil, fmt.Errorf("register %s: %w", definition.GetName(), retry.WithContextError(ctx, err))
		}
	}
	return resources, nil
}

func decodeCRDs(file []byte) (all []*unstructured.Object, err error) {
	for decoder := unstructured.NewYAMLDecoder(bytes.NewReader(file)); ; {
		obj, err := decoder.Next()
		switch {
		case errors.Is(err, io.EOF) && len(all) > 0:
			return all, nil
		case errors.Is(err, io.EOF):
			return nil, errors.New("the file has no document")
		case err != nil:
			return nil, err
		}
		if kind := obj.GroupVersionKind(); kind != crdKind {
			return nil, fmt.Errorf("document %d is a %s of %s, not a %s of %s", len(all)+1, kind.Kind, kind.GroupVersion(), crdKind.Kind, crdKind.GroupVersion())
		}
		all = append(all, obj)
	}
}

// conflictGrace is how long a name conflict in the status may be stale, from earlier names of the definition.
const conflictGrace = 3 * time.Second

// waitEstablished waits until the server has accepted a definition and its names.
func waitEstablished(ctx context.Context, crds *dynamic.Resource, name string) error {
	conflict := ""
	_, err := crds.Wait(ctx, name, dynamic.Matches("names accepted or rejected", func(definition *unstructured.Object) (bool, error) {
		conflict = nameConflict(definition)
		return conflict != "" || namesAccepted(definition), nil
	}))
	if err == nil && conflict != "" {
		graceCtx, cancel := context.WithTimeout(ctx, conflictGrace)
		defer cancel()
		_, err = crds.Wait(graceCtx, name, dynamic.Matches("names accepted", func(definition *unstructured.Object) (bool, error) {
			conflict = nameConflict(definition)
			return conflict == "" && namesAccepted(definition), nil
		}))
		if err != nil && ctx.Err() == nil && graceCtx.Err() != nil {
			return fmt.Errorf("names rejected by the server: %s", conflict)
		}
	}
	if err != nil {
		return err
	}
	_, err = crds.Wait(ctx, name, dynamic.Condition("Established"))
	return err
}

// namesAccepted reports whether status.acceptedNames equals spec.names.
func namesAccepted(definition *unstructured.Object) bool {
	requested, _, _ := unstructured.Get[map[string]any](definition, "spec", "names")
	accepted, found, _ := unstructured.Get[map[string]any](definition, "status", "acceptedNames")
	return found && reflect.DeepEqual(requested, accepted)
}

// nameConflict returns the reason for rejected names, or "".
func nameConflict(definition *unstructured.Object) string {
	condition, _, _ := unstructured.Get[map[string]any](definition, "status", "conditions", "[type=NamesAccepted]")
	if condition["status"] != "False" {
		return ""
	}
	return fmt.Sprintf("%v: %v", condition["reason"], condition["message"])
}

// crd has the served kind and versions of a definition. waitServed removes versions with served: false.
type crd struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions []crdVersion `json:"versions"`
	} `json:"spec"`
}

type crdVersion struct {
	Name         string         `json:"name"`
	Served       bool           `json:"served"`
	Subresources map[string]any `json:"subresources"`
}

// serveGrace is how long consecutive errors are retried after a resource is established.
const serveGrace = 5 * time.Second

// waitServed waits until every version of a definition works. This takes a moment after it is established.
func waitServed(ctx context.Context, client *dynamic.Client, definition *unstructured.Object) (*dynamic.Resource, error) {
	decoded, err := unstructured.As[crd](definition)
	if err != nil {
		return nil, err
	}
	decoded.Spec.Versions = slices.DeleteFunc(decoded.Spec.Versions, func(v crdVersion) bool { return !v.Served })
	if len(decoded.Spec.Versions) == 0 {
		return nil, errors.New("the definition has no served version")
	}
	var failingSince time.Time
	for {
		version, err := decoded.missingVersion(ctx, client)
		switch {
		case err == nil && version == "":
			return client.ForKind(ctx, schema.GroupVersionKind{Group: decoded.Spec.Group, Kind: decoded.Spec.Names.Kind})
		case err == nil:
			failingSince = time.Time{}
		case failingSince.IsZero():
			failingSince = time.Now()
		case time.Since(failingSince) > serveGrace:
			return nil, err
		}
		if ctxErr := retry.Sleep(ctx, retry.Jitter(ctx, 50*time.Millisecond)); ctxErr != nil {
			return nil, fmt.Errorf("version %s not served: %w", version, ctxErr)
		}
	}
}

// missingVersion returns the first version not served yet, or "".
func (d *crd) missingVersion(ctx context.Context, client *dynamic.Client) (string, error) {
	if _, err := client.Discovery().Refresh(ctx); err != nil {
		return d.Spec.Versions[0].Name, err
	}
	for _, version := range d.Spec.Versions {
		kind := schema.GroupVersionKind{Group: d.Spec.Group, Version: version.Name, Kind: d.Spec.Names.Kind}
		if served, err := isServed(ctx, client, kind, version.Subresources); err != nil || !served {
			return version.Name, err
		}
	}
	return "", nil
}

// isServed reports whether discovery lists a version with its subresources, and requests find it.
func isServed(ctx context.Context, client *dynamic.Client, kind schema.GroupVersionKind, subresources map[string]any) (bool, error) {
	resource, err := client.ForKind(ctx, kind)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for name := range subresources {
		if _, found := resource.APIResource().Subresource(name); !found {
			return false, nil
		}
	}
	// Not a list: it might call a conversion webhook before it runs.
	_, err = resource.Get(ctx, "none", nil)
	switch {
	case retry.IsObjectNotFound(err), apierrors.IsForbidden(err): // a forbidden resource may be served
		return true, nil
	case retry.IsPathNotFound(err):
		return false, nil
	}
	return err == nil, err
}
