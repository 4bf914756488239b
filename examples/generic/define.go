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
)

//go:embed foo.yaml
var definition []byte

// define creates the CustomResourceDefinition of Foo and waits until the server serves it. It returns a handle on Foos and a
// function to delete the definition with all Foos.
func define(ctx context.Context, client *dynamic.Client, out io.Writer) (foos *dynamic.Resource, remove func(), err error) {
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
	remove = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second) // also when interrupted
		defer cancel()
		if _, err := crds.Delete(ctx, name, nil); err != nil {
			fmt.Fprintf(out, "could not delete %s: %v\n", name, err)
		}
	}
	if _, err = crds.Wait(ctx, name, dynamic.Condition("Established")); err == nil {
		foos, err = client.Resource(ctx, name)
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	fmt.Fprintf(out, "defined %s\n", foos.APIResource().GVK)
	return foos, remove, nil
}
