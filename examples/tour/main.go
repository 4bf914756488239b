// Command tour is a first trip through the client: it finds a cluster as kubectl does, shows what the server serves,
// creates a custom resource definition and works with objects of it and of a built-in kind, then cleans up.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	cfg, err := transport.Load(ctx, nil)
	if err != nil {
		return err
	}
	client, err := dynamic.Connect(ctx, cfg)
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
	if err := builtIn(ctx, client, out); err != nil {
		return fmt.Errorf("work with a built-in kind: %w", err)
	}
	if err := custom(ctx, client, out); err != nil {
		return fmt.Errorf("work with a custom kind: %w", err)
	}
	return nil
}

// describe says what the server serves, in a line.
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

// builtIn applies, reads and deletes a ConfigMap.
func builtIn(ctx context.Context, client *dynamic.Client, out io.Writer) error {
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
	defer cleanUp(ctx, configMaps, applied.GetName(), out)

	read, err := configMaps.Get(ctx, "anykind-tour", nil)
	if err != nil {
		return err
	}
	greeting, _, err := unstructured.Get[string](read, "data", "greeting")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "ConfigMap %s/%s says %q\n", read.GetNamespace(), read.GetName(), greeting)
	return nil
}

// custom registers the kind At and lives through the life of two objects of it.
func custom(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	ats, remove, err := register(ctx, client, out)
	if err != nil {
		return err
	}
	defer remove()

	for _, name := range []string{"breakfast", "lunch"} {
		if _, err := ats.Create(ctx, at(name, map[string]any{"schedule": "2026-12-24T08:00:00Z", "command": "echo " + name}), nil); err != nil {
			return err
		}
	}
	for obj, err := range ats.List(ctx, nil) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "listed %s\n", obj.GetName())
	}
	if err := watchAPatch(ctx, ats, out); err != nil {
		return err
	}
	if err := shareFields(ctx, ats, out); err != nil {
		return err
	}
	if err := readStatus(ctx, ats, out); err != nil {
		return err
	}
	cleanUp(ctx, ats, "lunch", out) // breakfast goes with the definition
	return nil
}

func at(name string, spec map[string]any) *unstructured.Object {
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": "cnat.programming-kubernetes.info/v1alpha1",
		"kind":       "At",
		"metadata":   map[string]any{"name": name},
		"spec":       spec,
	}}
}

// watchAPatch watches the objects from now on and patches one of them: the event comes with the patched object.
func watchAPatch(ctx context.Context, ats *dynamic.Resource, out io.Writer) error {
	now, err := ats.ListPage(ctx, &metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if _, err := ats.Patch(ctx, "lunch", types.MergePatchType, []byte(`{"spec":{"schedule":"2026-12-24T12:00:00Z"}}`), nil); err != nil {
		return err
	}
	for event, err := range ats.Watch(ctx, &metav1.ListOptions{ResourceVersion: now.ResourceVersion}) {
		if err != nil {
			return err
		}
		schedule, _, err := unstructured.Get[string](event.Object, "spec", "schedule")
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "watched %s %s: schedule is now %s\n", event.Type, event.Object.GetName(), schedule)
		break // closes the connection
	}
	return nil
}

// shareFields applies one field as a field manager of its own; the others keep their values.
func shareFields(ctx context.Context, ats *dynamic.Resource, out io.Writer) error {
	applied, err := ats.Apply(ctx, at("lunch", map[string]any{"retries": 3}), &metav1.ApplyOptions{FieldManager: "tour"})
	if err != nil {
		return err
	}
	retries, _, err := unstructured.Get[int64](applied, "spec", "retries")
	if err != nil {
		return err
	}
	command, _, err := unstructured.Get[string](applied, "spec", "command")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "applied %s: retries %d, and still command %q\n", applied.GetName(), retries, command)
	return nil
}

// readStatus writes and reads the status through its subresource, the only way to write it.
func readStatus(ctx context.Context, ats *dynamic.Resource, out io.Writer) error {
	status := ats.Sub("status")
	if _, err := status.Patch(ctx, "lunch", types.MergePatchType, []byte(`{"status":{"phase":"DONE"}}`), nil); err != nil {
		return err
	}
	obj, err := status.Get(ctx, "lunch", nil)
	if err != nil {
		return err
	}
	phase, _, err := unstructured.Get[string](obj, "status", "phase")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "status of %s: %s\n", obj.GetName(), phase)
	return nil
}
