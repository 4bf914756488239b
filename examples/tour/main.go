// Command tour shows the client's main calls: it finds a cluster like kubectl, describes it, creates, reads, patches, watches and
// deletes objects of a built-in kind and of a custom kind (custom.go), and cleans up.
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

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

func main() {
	flag.Usage = func() { fmt.Fprintln(flag.CommandLine.Output(), "usage: tour") }
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
	return tour(ctx, client, os.Stdout)
}

func tour(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	if err := describe(ctx, client, out); err != nil {
		return fmt.Errorf("describe the server: %w", err)
	}
	if err := useBuiltInKind(ctx, client, out); err != nil {
		return fmt.Errorf("use a built-in kind: %w", err)
	}
	if err := useCustomKind(ctx, client, out); err != nil {
		return fmt.Errorf("use a custom kind: %w", err)
	}
	return nil
}

// describe prints the version of the server and the number of its resources.
func describe(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	version, err := client.Discovery().ServerVersion(ctx)
	if err != nil {
		return err
	}
	served, err := client.Discovery().Snapshot(ctx)
	if err != nil {
		return err
	}
	resources := 0
	for _, group := range served.Groups {
		resources += len(group.Versions[0].Resources)
	}
	fmt.Fprintf(out, "Kubernetes %s serves %d resources in %d API groups\n", version.GitVersion, resources, len(served.Groups))
	return nil
}

// useBuiltInKind applies, gets and deletes a ConfigMap.
func useBuiltInKind(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	configMaps, err := client.Resource(ctx, "cm") // or configmaps, ConfigMap, configmaps.v1.
	if err != nil {
		return err
	}
	applied, err := configMaps.Apply(ctx, &unstructured.Object{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": "anykind-tour"},
		"data":       map[string]any{"greeting": "hello"},
	}}, &metav1.ApplyOptions{FieldManager: "tour"})
	if err != nil {
		return err
	}
	defer deleteObject(ctx, configMaps, applied.GetName(), out)

	configMap, err := configMaps.Get(ctx, "anykind-tour", nil)
	if err != nil {
		return err
	}
	greeting, _, err := unstructured.Get[string](configMap, "data", "greeting")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "ConfigMap %s/%s: greeting %q\n", configMap.GetNamespace(), configMap.GetName(), greeting)
	return nil
}

// deleteObject deletes an object, even after an interrupt.
func deleteObject(ctx context.Context, resource *dynamic.Resource, name string, out io.Writer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, err := resource.Delete(ctx, name, nil); err != nil {
		fmt.Fprintf(out, "could not delete %s %s: %v\n", resource, name, err)
		return
	}
	fmt.Fprintf(out, "deleted %s %s\n", resource, name)
}
