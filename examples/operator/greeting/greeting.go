// Package greeting is a controller: it registers the kind Greeting from a file and creates a ConfigMap for each Greeting. A
// finalizer deletes the ConfigMap; the status has the text and the observed generation.
package greeting

import (
	"context"
	_ "embed"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

//go:embed crd.yaml
var definition []byte

// Run reconciles the Greetings of a namespace, or for "" of all namespaces, until ctx ends.
func Run(ctx context.Context, client *dynamic.Client, namespace string, opts *controller.Options) error {
	if _, err := controller.RegisterCRDs(ctx, client, definition, nil); err != nil {
		return err
	}
	configMaps, err := client.Resource(ctx, "configmaps")
	if err != nil {
		return err
	}
	greetings, err := client.Resource(ctx, "greetings.v1.example.com")
	if err != nil {
		return err
	}
	greetings = greetings.AllNamespaces()
	if namespace != "" {
		greetings = greetings.Namespace(namespace)
	}
	g := &greetingHandler{greetings, configMaps}
	operator := controller.NewOperator(opts)
	operator.Watch(greetings, g.handle)
	return operator.Run(ctx)
}

// greetingHandler reconciles Greetings.
type greetingHandler struct{ greetings, configMaps *dynamic.Resource }

// handle applies a Greeting's ConfigMap and sets its status.
func (g *greetingHandler) handle(ctx context.Context, change cache.Change[unstructured.Object]) error {
	if change.Type == apiwatch.Deleted {
		return nil // the finalizer has deleted its ConfigMap
	}
	greeting, deleted, err := controller.Finalize(ctx, g.greetings, change.Object, "example.com/configmap", g.finalize)
	if err != nil || deleted {
		return err
	}
	name, _, err := unstructured.Get[string](greeting, "spec", "name")
	if err != nil {
		return err
	}
	text := "Hello, " + name
	configMap := &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": greeting.GetName(), "namespace": greeting.GetNamespace()},
		"data":     map[string]any{"text": text},
	}}
	if _, err := g.configMaps.Apply(ctx, configMap, &metav1.ApplyOptions{FieldManager: "greeter", Force: true}); err != nil {
		return err
	}
	_, err = controller.SetStatus(ctx, g.greetings, greeting, map[string]any{"text": text})
	return err
}

// finalize deletes the ConfigMap of a Greeting that is being deleted.
func (g *greetingHandler) finalize(ctx context.Context, greeting *unstructured.Object) error {
	_, err := g.configMaps.Namespace(greeting.GetNamespace()).Delete(ctx, greeting.GetName(), nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
