// Command paths uses API paths, as in Kubernetes' documentation, audit logs and kubectl -v=6: /api/v1/namespaces instead of a
// resource's name. It lists namespaces, creates, updates, patches and deletes a Deployment, and defines, creates and watches a
// custom kind.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

func main() {
	flag.Usage = func() { fmt.Fprintln(flag.CommandLine.Output(), "usage: paths") }
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	client, err := dynamic.Connect(ctx, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, step := range []func(context.Context, *dynamic.Client, io.Writer) error{listNamespaces, useDeployment, useCustomKind} {
		if err := step(ctx, client, os.Stdout); err != nil {
			return err
		}
	}
	return nil
}

func listNamespaces(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	namespaces, _, err := client.ForPath(ctx, "/api/v1/namespaces")
	if err != nil {
		return err
	}
	for namespace, err := range namespaces.List(ctx, nil) {
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "namespace", namespace.GetName())
	}
	return nil
}

// useDeployment creates, gets, updates, patches and deletes a Deployment.
func useDeployment(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	deployments, name, err := client.ForPath(ctx, "/apis/apps/v1/namespaces/default/deployments/paths-nginx")
	if err != nil {
		return err
	}
	labels := map[string]any{"app": name}
	_, err = deployments.Create(ctx, &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"replicas": 1,
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "nginx", "image": "nginx:1.29"}}},
			},
		},
	}}, nil)
	if err != nil {
		return err
	}
	defer deleteObject(ctx, deployments, name, out)
	current, err := deployments.Get(ctx, name, nil)
	if err != nil {
		return err
	}
	current.SetLabels(map[string]string{"tier": "front"})
	current.SetResourceVersion("") // update even if a controller has updated the status since
	updated, err := deployments.Update(ctx, current, nil)
	if err != nil {
		return err
	}
	patched, err := deployments.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), nil)
	if err != nil {
		return err
	}
	replicas, _, err := unstructured.Get[int64](patched, "spec", "replicas")
	fmt.Fprintf(out, "deployment %s: labels %v, replicas %d\n", name, updated.GetLabels(), replicas)
	return err
}

// useCustomKind defines the kind Foo, creates a Foo, patches it and watches the change.
func useCustomKind(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	const crd = "foos.paths.example.com"
	definitions, _, err := client.ForPath(ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
	if err != nil {
		return err
	}
	_, err = definitions.Create(ctx, &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": crd},
		"spec": map[string]any{
			"group": "paths.example.com", "scope": "Namespaced", "names": map[string]any{"plural": "foos", "kind": "Foo"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}}, nil)
	if err != nil {
		return err
	}
	defer deleteObject(ctx, definitions, crd, out)
	if _, err := definitions.Wait(ctx, crd, dynamic.Condition("Established")); err != nil {
		return err
	}
	foos, _, err := client.ForPath(ctx, "/apis/paths.example.com/v1/namespaces/default/foos")
	if err != nil {
		return err
	}
	created, err := foos.Create(ctx, &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "my-foo"}, "bar": "hello",
	}}, nil)
	if err != nil {
		return err
	}
	if _, err := foos.Patch(ctx, "my-foo", types.MergePatchType, []byte(`{"bar":"goodbye"}`), nil); err != nil {
		return err
	}
	for event, err := range foos.Watch(ctx, &metav1.ListOptions{ResourceVersion: created.GetResourceVersion()}) {
		if err != nil {
			return err
		}
		bar, _, err := unstructured.Get[string](event.Object, "bar")
		fmt.Fprintf(out, "foo %s: %s, bar is %q\n", event.Object.GetName(), event.Type, bar)
		return err
	}
	return fmt.Errorf("watch foos: no event")
}

// deleteObject deletes an object, even after an interrupt.
func deleteObject(ctx context.Context, resource *dynamic.Resource, name string, out io.Writer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, err := resource.Delete(ctx, name, nil); err != nil {
		fmt.Fprintln(out, err)
		return
	}
	fmt.Fprintf(out, "deleted %s %s\n", resource, name)
}
