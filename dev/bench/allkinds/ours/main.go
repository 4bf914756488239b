//go:build unix

// Command ours is a cache of package inventory.
package main

import (
	"context"
	"log"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dev/bench/internal/library"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/inventory"
	"github.com/anykind/anykind/transport"
)

type side struct {
	config *transport.Config
	cache  *inventory.Cache
}

func main() {
	library.Main(func(kubeconfig string) (library.Library, error) {
		config, err := transport.Load(context.Background(), &transport.LoadOptions{Path: kubeconfig})
		return &side{config: config}, err
	})
}

func (s *side) Sync(ctx context.Context, seen func(string)) (int, error) {
	client, err := dynamic.Connect(ctx, s.config)
	if err != nil {
		return 0, err
	}
	s.cache = inventory.NewCache(client, nil)
	go func() { log.Fatal(s.cache.Run(ctx)) }()
	if err := s.cache.WaitForSync(ctx); err != nil {
		return 0, err
	}
	go func() {
		for change, err := range s.cache.Changes(ctx, nil) {
			if err != nil {
				log.Fatal(err)
			}
			seen(change.Entry.Object().GetAnnotations()[library.Changed])
		}
	}()
	page, err := s.cache.Query(ctx, nil)
	if err != nil {
		return 0, err
	}
	return len(page.Entries), nil
}

func (s *side) Subtree(root library.Ref) (int, error) {
	page, err := s.cache.Query(context.Background(), &inventory.Query{Owner: types.UID(root.UID), Descendants: true})
	if err != nil {
		return 0, err
	}
	return len(page.Entries), nil
}
