package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Register makes the server serve the CustomResourceDefinitions of a file, of YAML or JSON with one document or many,
// and gives a handle on each resource, in the file's order and in the version that the server prefers. The handles work
// at once: Register waits until the server has accepted the names, serves every version and lists them in discovery.
//
// Definitions are applied by the server, opts' FieldManager owning what the file says. With nil opts that is "anykind",
// and it takes over what others have set; what they have set besides stays. So a definition that is there is brought up
// to the file, and one that is like it is not written. Nothing is applied unless the whole file can be read and holds
// nothing but definitions of apiextensions.k8s.io/v1.
//
// ctx is the time-out. Names that another definition has, which the server never accepts, are an error at once. It takes
// the verbs patch, get and watch on definitions. See
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/.
func Register(ctx context.Context, client *dynamic.Client, file []byte, opts *metav1.ApplyOptions) ([]*dynamic.Resource, error) {
	definitions, err := readDefinitions(file)
	if err != nil {
		return nil, fmt.Errorf("register definitions: %w", err)
	}
	if opts == nil {
		opts = &metav1.ApplyOptions{FieldManager: "anykind", Force: true}
	}
	crds, err := client.Kind(ctx, definitionKind)
	if err != nil {
		return nil, fmt.Errorf("register definitions: %w", retry.WithContextError(ctx, err))
	}
	for i, definition := range definitions {
		if definitions[i], err = crds.Apply(ctx, definition, opts); err != nil {
			return nil, fmt.Errorf("register %s: %w", definition.GetName(), retry.WithContextError(ctx, err))
		}
	}
	registered := make([]*dynamic.Resource, len(definitions))
	for i, definition := range definitions {
		if err = accepted(ctx, crds, definition.GetName()); err == nil {
			registered[i], err = served(ctx, client, definition)
		}
		if err != nil {
			return nil, fmt.Errorf("register %s: %w", definition.GetName(), retry.WithContextError(ctx, err))
		}
	}
	return registered, nil
}

func readDefinitions(file []byte) (all []*unstructured.Object, err error) {
	for decoder := unstructured.NewYAMLDecoder(bytes.NewReader(file)); ; {
		obj, err := decoder.Next()
		if errors.Is(err, io.EOF) && len(all) > 0 {
			return all, nil
		}
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the file holds none")
		}
		if err != nil {
			return nil, err
		}
		if kind := obj.GroupVersionKind(); kind != definitionKind {
			return nil, fmt.Errorf("document %d is a %s of %s, not a %s of %s", len(all)+1, kind.Kind, kind.GroupVersion(), definitionKind.Kind, definitionKind.GroupVersion())
		}
		all = append(all, obj)
	}
}
