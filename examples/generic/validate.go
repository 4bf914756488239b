package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/unstructured"
)

// validate validates a mistyped Foo by its definition. It needs no server: schema.New has the schemas of a server's kinds.
func validate(ctx context.Context, out io.Writer) error {
	crd, err := unstructured.NewYAMLDecoder(bytes.NewReader(definition)).Next()
	if err != nil {
		return err
	}
	none, err := schema.NewOffline("")
	if err != nil {
		return err
	}
	schemas, err := none.WithDefinitions(crd)
	if err != nil {
		return err
	}
	foo, err := unstructured.Decode([]byte(`{"apiVersion": "generic.example.com/v1", "kind": "Foo", "metadata": {"name": "baz"}, "spec": {"replicsa": 1}}`))
	if err != nil {
		return err
	}
	s, err := schemas.Kind(ctx, foo.GroupVersionKind())
	if err != nil {
		return err
	}
	for _, problem := range s.Validate(ctx, foo, nil).Problems {
		fmt.Fprintln(out, "not valid:", problem.String())
	}
	return nil
}
