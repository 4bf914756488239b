package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

//go:embed ats.yaml
var definition []byte

// useCustomKind defines the kind At, and creates, lists, watches, patches, applies and deletes objects of it.
func useCustomKind(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	ats, remove, err := define(ctx, client, out)
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
	if err := watchPatch(ctx, ats, out); err != nil {
		return err
	}
	if err := applyField(ctx, ats, out); err != nil {
		return err
	}
	if err := patchStatus(ctx, ats, out); err != nil {
		return err
	}
	deleteObject(ctx, ats, "lunch", out) // breakfast is deleted with the definition
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

// watchPatch patches an object and watches from the previous resourceVersion: the event has the patched object.
func watchPatch(ctx context.Context, ats *dynamic.Resource, out io.Writer) error {
	before, err := ats.ListPage(ctx, &metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if _, err := ats.Patch(ctx, "lunch", types.MergePatchType, []byte(`{"spec":{"schedule":"2026-12-24T12:00:00Z"}}`), nil); err != nil {
		return err
	}
	for event, err := range ats.Watch(ctx, &metav1.ListOptions{ResourceVersion: before.ResourceVersion}) {
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

// applyField applies a single field with a separate field manager. All remaining fields keep their values.
func applyField(ctx context.Context, ats *dynamic.Resource, out io.Writer) error {
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
	fmt.Fprintf(out, "applied %s: retries %d, command still %q\n", applied.GetName(), retries, command)
	return nil
}

// patchStatus patches and gets the status. It can only be written through its subresource.
func patchStatus(ctx context.Context, ats *dynamic.Resource, out io.Writer) error {
	status := ats.Subresource("status")
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

// define creates the CustomResourceDefinition of At and waits until the server serves it. It returns a handle on Ats and a
// function to delete the definition with all Ats. An existing definition is an error: its owner may be a different program.
func define(ctx context.Context, client *dynamic.Client, out io.Writer) (ats *dynamic.Resource, remove func(), err error) {
	crd, err := unstructured.NewYAMLDecoder(bytes.NewReader(definition)).Next()
	if err != nil {
		return nil, nil, err
	}
	crds, err := client.ForObject(ctx, crd)
	if err != nil {
		return nil, nil, err
	}
	name := crd.GetName()
	if _, err := crds.Create(ctx, crd, nil); err != nil {
		return nil, nil, err
	}
	remove = func() { deleteObject(ctx, crds, name, out) }
	if _, err = crds.Wait(ctx, name, dynamic.Condition("Established")); err == nil {
		ats, err = client.Resource(ctx, name)
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	fmt.Fprintf(out, "created %s; the server now serves %s\n", name, ats.APIResource().GVK.Kind)
	return ats, remove, nil
}
