package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

//go:embed ats.yaml
var definition []byte

// register creates the definition of the kind At, waits until the server serves it, and gives a handle on its objects
// and a function that deletes the definition and, with it, all of them. A definition that is there already is not
// touched: it is somebody else's.
func register(ctx context.Context, client *dynamic.Client, out io.Writer) (ats *dynamic.Resource, remove func(), err error) {
	definitionJSON, err := yaml.YAMLToJSON(definition)
	if err != nil {
		return nil, nil, err
	}
	crd, err := unstructured.Decode(definitionJSON)
	if err != nil {
		return nil, nil, err
	}
	crds, err := client.Of(ctx, crd)
	if err != nil {
		return nil, nil, err
	}
	created, err := crds.Create(ctx, crd, nil)
	if err != nil {
		return nil, nil, err
	}
	remove = func() { cleanUp(ctx, crds, created.GetName(), out) }
	ats, err = served(ctx, client, crds, created.GetName())
	if err != nil {
		remove()
		return nil, nil, err
	}
	fmt.Fprintf(out, "created %s; the server now serves %s\n", created.GetName(), ats.Mapping().GVK.Kind)
	return ats, remove, nil
}

// served waits until the definition is established and the server's discovery, which follows a moment later, has it.
func served(ctx context.Context, client *dynamic.Client, crds *dynamic.Resource, name string) (*dynamic.Resource, error) {
	for event, err := range crds.Watch(ctx, &metav1.ListOptions{FieldSelector: "metadata.name=" + name}) {
		if err != nil {
			return nil, err
		}
		if established(event.Object) {
			break
		}
	}
	for {
		ats, err := client.Resource(ctx, name)
		if !meta.IsNoMatchError(err) {
			return ats, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func established(crd *unstructured.Object) bool {
	conditions, _, err := unstructured.Get[[]any](crd, "status", "conditions")
	if err != nil {
		return false
	}
	for _, item := range conditions {
		condition, ok := item.(map[string]any)
		if ok && condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}

// cleanUp deletes an object, also when the tour was interrupted.
func cleanUp(ctx context.Context, resource *dynamic.Resource, name string, out io.Writer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, err := resource.Delete(ctx, name, nil); err != nil {
		fmt.Fprintf(out, "could not delete %s %s: %v\n", resource, name, err)
		return
	}
	fmt.Fprintf(out, "deleted %s %s\n", resource, name)
}
