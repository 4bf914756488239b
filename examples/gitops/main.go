// Command gitops keeps a namespace equal to the manifests of a folder, such as a checkout updated by git-sync. Again and again it
// applies the manifests, deletes the objects removed from the folder, and reverts foreign changes.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured/manifest"
)

func main() {
	name := flag.String("set", "gitops", "`name` of the set of objects")
	folder := flag.String("folder", "manifests", "`folder` with the manifests")
	interval := flag.Duration("interval", 30*time.Second, "`time` between two runs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	client, err := dynamic.Connect(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	set := applyset.New(client, applyset.Parent{Name: *name}, nil)
	for ctx.Err() == nil {
		if err := sync(ctx, set, *folder); err != nil {
			log.Print(err) // the next run tries again
		}
		select {
		case <-ctx.Done():
		case <-time.After(*interval):
		}
	}
}

// sync applies the folder once, and logs the changes.
func sync(ctx context.Context, set *applyset.Set, folder string) error {
	objects, err := manifest.Reader{Paths: []string{folder}, Recursive: true}.Read(ctx)
	if err != nil {
		return err
	}
	_, err = set.Apply(ctx, objects, &applyset.ApplyOptions{Conflicts: applyset.ConflictForce, OnEvent: func(event applyset.Event) {
		if event.Action != applyset.Unchanged {
			log.Print(event.Action, " ", event.Object, " ", event.Reason)
		}
	}})
	return err
}
