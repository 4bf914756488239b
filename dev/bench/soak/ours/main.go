//go:build unix

// Command ours keeps the soak's caches with anykind.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dev/bench/internal/soak"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func main() { soak.Main(start) }

type side struct {
	caches map[string]*cache.Cache[unstructured.Object]
	events atomic.Int64
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu      sync.Mutex
	trouble error
}

func start(ctx context.Context, config *soak.Config) (soak.Side, error) {
	loaded, err := transport.Load(ctx, &transport.LoadOptions{Path: config.Kubeconfig})
	if err != nil {
		return nil, err
	}
	loaded.Protobuf = os.Getenv("ANYKIND_PROTOBUF") == "1"
	conn, err := transport.Open(loaded)
	if err != nil {
		return nil, err
	}
	client := dynamic.New(conn, nil)
	ctx, cancel := context.WithCancel(ctx)
	if config.Inventory {
		return startInventory(ctx, client, func() { cancel(); conn.Close() }), nil
	}
	s := &side{caches: map[string]*cache.Cache[unstructured.Object]{}, cancel: func() { cancel(); conn.Close() }}
	s.all.Go(func() { s.note(ctx, "live discovery", client.Discovery().Run(ctx)) })
	for _, source := range config.Sources {
		resource, err := client.Resource(ctx, source.Resource+"."+source.Version+"."+source.Group)
		if source.Group == "" {
			resource, err = client.Resource(ctx, source.Resource)
		}
		if err != nil {
			s.Stop()
			return nil, err
		}
		if source.Namespace == "" {
			resource = resource.AllNamespaces()
		} else {
			resource = resource.Namespace(source.Namespace)
		}
		objects := cache.New(resource, &cache.Options[unstructured.Object]{LabelSelector: source.LabelSelector})
		s.caches[source.String()] = objects
		s.all.Go(func() { s.note(ctx, source.String(), objects.Run(ctx)) })
		s.all.Go(func() {
			for range objects.Changes(ctx) {
				s.events.Add(1)
			}
		})
	}
	return s, nil
}

// note keeps the first unexpected error.
func (s *side) note(ctx context.Context, name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil && s.trouble == nil {
		s.trouble = fmt.Errorf("%s: %w", name, err)
	}
}

func (s *side) Versions() soak.Versions {
	all := soak.Versions{}
	for name, objects := range s.caches {
		versions := map[string]string{}
		for _, object := range objects.List("", nil) {
			versions[object.GetNamespace()+"/"+object.GetName()] = object.GetResourceVersion()
		}
		all[name] = versions
	}
	return all
}

func (s *side) Count() (count int, events int64, trouble error) {
	for _, objects := range s.caches {
		count += len(objects.List("", nil))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return count, s.events.Load(), s.trouble
}

func (s *side) Stop() {
	s.cancel()
	s.all.Wait()
	s.caches = nil
}
