// Package greeter has a small controller and shows, in its test, how to test it with apitest. The controller keeps a ConfigMap
// with a text for each Greeting and writes the text into its status.
package greeter

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// Run reconciles all Greetings until ctx ends.
func Run(ctx context.Context, client *dynamic.Client) error {
	greetings, err := client.ForKind(ctx, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Greeting"})
	if err != nil {
		return err
	}
	configMaps, err := client.Resource(ctx, "configmaps")
	if err != nil {
		return err
	}
	stored := cache.New(greetings.AllNamespaces(), (*cache.Options[unstructured.Object])(nil))
	tracked := stored.TrackWrites(greetings) // reconciles see their own writes
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop(nil)
	running.Go(func() { stop(stored.Run(ctx)) })
	return controller.Run(ctx, stored, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		greeting, found := stored.Get(key.Namespace, key.Name)
		if !found || greeting.GetDeletionTimestamp() != nil {
			return 0, nil // the garbage collector removes the ConfigMap
		}
		return 0, reconcile(ctx, tracked, configMaps, greeting)
	}, nil)
}

// reconcile applies the ConfigMap of a Greeting and updates the status if the text has changed.
func reconcile(ctx context.Context, greetings, configMaps *dynamic.Resource, greeting *unstructured.Object) error {
	name, _, err := unstructured.Get[string](greeting, "spec", "name")
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Hello, %s!", name)
	configMap := &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"text": text},
		"metadata": map[string]any{"name": greeting.GetName(), "namespace": greeting.GetNamespace()},
	}}
	if err := controller.SetControllerReference(greeting, configMap); err != nil {
		return err
	}
	if _, err := configMaps.Apply(ctx, configMap, &metav1.ApplyOptions{FieldManager: "greeter", Force: true}); err != nil {
		return err
	}
	if written, _, err := unstructured.Get[string](greeting, "status", "text"); err != nil || written == text {
		return err
	}
	_, err = controller.SetStatus(ctx, greetings, greeting, map[string]any{"text": text})
	return err
}
