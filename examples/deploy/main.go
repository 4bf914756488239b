// Command deploy applies the manifests of a folder in order, and deletes the objects removed from it since the last run: deploy web ./manifests
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured/manifest"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: deploy NAME FOLDER")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	objects, err := manifest.Reader{Paths: os.Args[2:], Recursive: true}.Read(ctx)
	if err != nil {
		log.Fatal(err)
	}
	client, err := dynamic.Connect(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	set := applyset.New(client, applyset.Parent{Name: os.Args[1]}, nil)
	_, err = set.Apply(ctx, objects, &applyset.ApplyOptions{OnEvent: func(event applyset.Event) {
		fmt.Println(event.Action, event.Object, event.Reason)
	}})
	if err != nil {
		log.Fatal(err)
	}
}
