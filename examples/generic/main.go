// Command generic works with a custom kind, Foo, with and without a Go struct: it defines the kind, creates,
// patches, applies, lists and deletes objects, and cleans up.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// Foo has the fields used by this program; foo.yaml defines a further field.
type Foo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              FooSpec   `json:"spec"`
	Status            FooStatus `json:"status,omitzero"`
}

// FooSpec is the desired state.
type FooSpec struct {
	Info     string `json:"info,omitempty"`
	Replicas int    `json:"replicas,omitempty"`
}

// FooStatus is the observed state.
type FooStatus struct {
	IsBad bool `json:"isBad"`
}

func main() {
	flag.Usage = func() { fmt.Fprintln(flag.CommandLine.Output(), "usage: generic") }
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
	return generic(ctx, client, os.Stdout)
}

func generic(ctx context.Context, client *dynamic.Client, out io.Writer) error {
	if err := validate(ctx, out); err != nil {
		return err
	}
	untyped, remove, err := define(ctx, client, out)
	if err != nil {
		return err
	}
	defer remove()
	foos := dynamic.As[Foo](untyped)
	if err := write(ctx, foos, out); err != nil {
		return err
	}
	if err := read(ctx, foos, out); err != nil {
		return err
	}
	if _, err := foos.Delete(ctx, "baz", nil); err != nil {
		return err
	}
	_, err = foos.Wait(ctx, "baz", dynamic.Deleted())
	fmt.Fprintln(out, "deleted baz")
	return err
}

// write creates, patches, applies and updates Foos.
func write(ctx context.Context, foos *dynamic.Handle[Foo], out io.Writer) error {
	baz, err := foos.Create(ctx, &Foo{ObjectMeta: metav1.ObjectMeta{Name: "baz"}, Spec: FooSpec{Info: "unpatched baz", Replicas: 1}}, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "created %s %s: %+v\n", baz.Kind, baz.Name, baz.Spec)

	baz, err = foos.Subresource("status").Patch(ctx, "baz", types.MergePatchType, []byte(`{"status":{"isBad":true}}`), nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "patched the status of %s: %+v\n", baz.Name, baz.Status)

	qux, err := foos.Apply(ctx, &Foo{ObjectMeta: metav1.ObjectMeta{Name: "qux"}, Spec: FooSpec{Replicas: 2}}, &metav1.ApplyOptions{FieldManager: "generic"})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "applied %s: %+v\n", qux.Name, qux.Spec)

	qux, outcome, err := foos.Upsert(ctx, "qux", func(qux *Foo) error {
		qux.Spec.Replicas++
		return nil
	}, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s %s: %+v\n", outcome, qux.Name, qux.Spec)
	return nil
}

// read lists Foos, and gets a Foo without the struct.
func read(ctx context.Context, foos *dynamic.Handle[Foo], out io.Writer) error {
	for foo, err := range foos.List(ctx, nil) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "listed %s: %+v\n", foo.Name, foo.Spec)
	}
	obj, err := dynamic.As[unstructured.Object](foos).Get(ctx, "qux", nil)
	if err != nil {
		return err
	}
	color, _, err := unstructured.Get[string](obj, "spec", "color")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "qux is %s, a field that the struct lacks\n", color)
	return nil
}
