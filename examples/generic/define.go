package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/api/meta"
)

//go:embed foo.yaml
var definition []byte

// define creates the kind Foo, waits until the server serves it, and gives a handle on its objects and a function that
// deletes the kind and all of them.
func define(ctx context.Context, client *dynamic.Client, out io.Writer) (foos *dynamic.Resource, remove func(), err error) {
	crd, err := unstructured.NewYAMLDecoder(bytes.NewReader(definition)).Next()
	if err != nil {
		return nil, nil, err
	}
	crds, err := client.Of(ctx, crd)
	if err != nil {
		return nil, nil, err
	}
	name := crd.GetName()
	if _, err := crds.Create(ctx, crd, nil); err != nil {
		return nil, nil, err
	}
	remove = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second) // also when interrupted
		defer cancel()
		if _, err := crds.Delete(ctx, name, nil); err != nil {
			fmt.Fprintf(out, "could not delete %s: %v\n", name, err)
		}
	}
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err = crds.Wait(limit, name, dynamic.Condition("Established")); err == nil {
		foos, err = served(limit, client, name)
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	fmt.Fprintf(out, "defined %s\n", foos.Mapping().GVK)
	return foos, remove, nil
}

// served waits until the server's discovery has a resource, which is a moment after its definition is established.
func served(ctx context.Context, client *dynamic.Client, name string) (*dynamic.Resource, error) {
	for {
		found, err := client.Resource(ctx, name)
		if !meta.IsNoMatchError(err) {
			return found, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}
