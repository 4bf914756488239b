// Command paths works by the paths of the API, as its documentation, audit logs and kubectl -v=6 show them: what others
// write as client.api.v1.namespaces.get() is here a handle on /api/v1/namespaces. It lists namespaces, takes a
// Deployment through its life, and registers, uses and watches a kind of its own.
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

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	cfg, err := transport.Load(ctx, nil)
	if err != nil {
		return err
	}
	client, err := dynamic.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, part := range []func(context.Context, *dynamic.Client, io.Writer) error{namespaces, deployment, custom} {
		if err := part(ctx, client, os.Stdout); err != nil {
			return err
		}
	}
	return nil
}

func namespaces(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	all, _, err := client.At(ctx, "/api/v1/namespaces")
	if err != nil {
		return err
	}
	for namespace, err := range all.List(ctx, nil) {
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "namespace", namespace.GetName())
	}
	return nil
}

// deployment creates, reads, replaces, patches and deletes one.
func deployment(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	deployments, name, err := client.At(ctx, "/apis/apps/v1/namespaces/default/deployments/paths-nginx")
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
	defer remove(ctx, deployments, name, out)
	read, err := deployments.Get(ctx, name, nil)
	if err != nil {
		return err
	}
	read.SetLabels(map[string]string{"tier": "front"})
	read.SetResourceVersion("") // replace it even if a controller has written its status since
	replaced, err := deployments.Update(ctx, read, nil)
	if err != nil {
		return err
	}
	patched, err := deployments.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), nil)
	if err != nil {
		return err
	}
	replicas, _, err := unstructured.Get[int64](patched, "spec", "replicas")
	fmt.Fprintf(out, "deployment %s: labels %v, replicas %d\n", name, replaced.GetLabels(), replicas)
	return err
}

// custom registers the kind Foo, creates one and watches it change.
func custom(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	const crd = "foos.paths.example.com"
	definitions, _, err := client.At(ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
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
	defer remove(ctx, definitions, crd, out)
	foos, err := served(ctx, client, "/apis/paths.example.com/v1/namespaces/default/foos")
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
	return fmt.Errorf("the watch of foos ended before anything changed")
}

// served waits until the server serves what was registered a moment ago, and no longer an earlier one that is going.
func served(ctx context.Context, client *dynamic.Client, path string) (*dynamic.Resource, error) {
	for {
		found, _, err := client.At(ctx, path)
		if err != nil && !meta.IsNoMatchError(err) || err == nil && found.Mapping().Supports("create") {
			return found, err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("wait until %s is served: %w", path, ctx.Err())
		}
		if _, err := client.Discovery().Refresh(ctx); err != nil {
			return nil, err
		}
	}
}

// remove deletes what the example made, even where it was interrupted.
func remove(ctx context.Context, of *dynamic.Resource, name string, out io.Writer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, err := of.Delete(ctx, name, nil); err != nil {
		fmt.Fprintln(out, err)
		return
	}
	fmt.Fprintf(out, "deleted %s %s\n", of, name)
}
