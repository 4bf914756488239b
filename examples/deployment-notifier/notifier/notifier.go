// Package notifier is a controller: it registers the kind DeploymentNotifier. For each DeploymentNotifier it watches the
// Deployment named in spec.deployment until the DeploymentNotifier is deleted. It prints the images of the Deployment, their
// changes with spec.notify, and the deletion.
package notifier

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

//go:embed crd.yaml
var definition []byte

// Run runs a goroutine for each DeploymentNotifier until ctx ends. They write to out concurrently.
func Run(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	registered, err := controller.RegisterCRDs(ctx, client, definition, nil)
	if err != nil {
		return err
	}
	deployments, err := client.Resource(ctx, "deployments")
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	defer group.Wait()
	notifiers := map[types.UID]notifier{}
	defer func() {
		for _, n := range notifiers {
			n.stop()
		}
	}()
	for change, err := range registered[0].AllNamespaces().Follow(ctx, nil) {
		if err != nil {
			return err
		}
		if change.Object == nil {
			continue
		}
		uid := change.Object.GetUID()
		generation := change.Object.GetGeneration()
		running, exists := notifiers[uid]
		if exists && (change.Type == watch.Deleted || running.generation != generation) {
			running.stop()
			delete(notifiers, uid)
		}
		if change.Type != watch.Deleted && (!exists || running.generation != generation) {
			notifierCtx, stop := context.WithCancel(ctx)
			notifiers[uid] = notifier{generation, stop}
			group.Go(func() { printImages(notifierCtx, deployments, change.Object, out) })
		}
	}
	return nil
}

// notifier is the running goroutine of a DeploymentNotifier: the generation of its spec, and its stop function.
type notifier struct {
	generation int64
	stop       context.CancelFunc
}

// printImages watches the Deployment of a DeploymentNotifier until ctx ends.
func printImages(ctx context.Context, deployments *dynamic.Resource, notifier *unstructured.Object, out io.Writer) {
	spec, err := unstructured.As[struct {
		Spec struct {
			Deployment string          `json:"deployment"`
			Notify     json.RawMessage `json:"notify"`
		} `json:"spec"`
	}](notifier)
	if err != nil {
		fmt.Fprintln(out, notifier.GetName(), err)
		return
	}
	name := spec.Spec.Deployment
	oldImages := ""
	opts := &dynamic.FollowOptions{FieldSelector: "metadata.name=" + name}
	for change, err := range deployments.Namespace(notifier.GetNamespace()).Follow(ctx, opts) {
		switch {
		case ctx.Err() != nil:
			fmt.Fprintf(out, "%s: no longer watching %s\n", notifier.GetName(), name)
			return
		case err != nil:
			fmt.Fprintln(out, notifier.GetName(), err)
			return
		case change.Type == watch.Deleted:
			fmt.Fprintf(out, "%s: %s is deleted\n", notifier.GetName(), name)
			oldImages = ""
			continue
		case change.Object == nil:
			continue
		}
		switch newImages := images(change.Object); oldImages {
		case newImages:
		case "":
			fmt.Fprintf(out, "%s: %s has %s\n", notifier.GetName(), name, newImages)
			oldImages = newImages
		default:
			text := fmt.Sprintf("%s: %s changed from %s to %s %s", notifier.GetName(), name, oldImages, newImages, spec.Spec.Notify)
			fmt.Fprintln(out, strings.TrimSpace(text))
			oldImages = newImages
		}
	}
}

// images returns the images of a Deployment's containers.
func images(deployment *unstructured.Object) string {
	containers, _, err := unstructured.Get[[]any](deployment, "spec", "template", "spec", "containers")
	if err != nil {
		return err.Error()
	}
	var all []string
	for i := range containers {
		image, _, err := unstructured.Get[string](deployment, "spec", "template", "spec", "containers", fmt.Sprint(i), "image")
		if err != nil {
			return err.Error()
		}
		all = append(all, image)
	}
	return strings.Join(all, " ")
}
