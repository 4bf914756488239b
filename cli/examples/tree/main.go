// Command tree prints the owners and dependents of objects with their readiness: tree deploy/web
package main

import (
	"context"
	"log"
	"os"

	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/cli/tree"
)

func main() {
	ctx := context.Background()
	finder := &resource.Finder{Connection: flags.NewConnection()}
	client, err := finder.Connection.Client(ctx)
	if err != nil {
		log.Fatal(err)
	}
	found, err := tree.Find(ctx, client, finder.Objects(ctx, os.Args[1:], true), nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := tree.Write(os.Stdout, found, nil); err != nil {
		log.Fatal(err)
	}
}
