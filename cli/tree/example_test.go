package tree_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/cli/tree"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

// All that a deployment owns, and its own owners.
func ExampleFind() {
	find := func(ctx context.Context, connection *flags.Connection) error {
		client, err := connection.Client(ctx)
		if err != nil {
			return err
		}
		finder := &resource.Finder{Connection: connection}
		found, err := tree.Find(ctx, client, finder.Objects(ctx, []string{"deploy/web"}, true), nil)
		if err != nil {
			return err
		}
		for _, err := range found.Unread {
			log.Printf("not in the tree: %v", err)
		}
		return tree.Write(os.Stdout, found, nil)
	}
	_ = find
}

func ExampleWrite() {
	object := func(kind, name string) *unstructured.Object {
		obj := &unstructured.Object{Object: map[string]any{"kind": kind}}
		obj.SetName(name)
		return obj
	}
	pod := &tree.Node{Object: object("Pod", "web-1"), Health: readiness.Result{Status: readiness.InProgress, Message: "not ready"}}
	deployment := &tree.Node{Object: object("Deployment", "web"), Health: readiness.Result{Status: readiness.Current}, Owned: []*tree.Node{pod}}
	err := tree.Write(os.Stdout, &tree.Tree{Roots: []*tree.Node{deployment}}, &tree.WriteOptions{Now: time.Now()})
	fmt.Println(err)
	// Output:
	// OBJECT           STATUS       AGE         MESSAGE
	// Deployment/web   Current      <unknown>
	// └─Pod/web-1      InProgress   <unknown>   not ready
	// <nil>
}
