//go:build unix

package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dev/bench/internal/soak"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/inventory"
)

// inventorySide keeps a cache of all kinds, and the result of its changes.
type inventorySide struct {
	cache  *inventory.Cache
	cancel context.CancelFunc
	all    sync.WaitGroup
	events atomic.Int64

	mu      sync.Mutex
	trouble error
	changed map[types.UID]string // the resourceVersions by the changes
}

func startInventory(ctx context.Context, client *dynamic.Client, cancel context.CancelFunc) *inventorySide {
	s := &inventorySide{cache: inventory.NewCache(client, nil), cancel: cancel, changed: map[types.UID]string{}}
	s.all.Go(func() {
		if err := s.cache.Run(ctx); ctx.Err() == nil {
			s.setTrouble(err)
		}
	})
	s.all.Go(func() {
		for change, err := range s.cache.Changes(ctx, nil) {
			if err != nil {
				if ctx.Err() == nil {
					s.setTrouble(err)
				}
				return
			}
			s.note(change)
		}
	})
	return s
}

func (s *inventorySide) setTrouble(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = err
}

func (s *inventorySide) note(change inventory.Change) {
	s.events.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if change.Type == watch.Deleted {
		delete(s.changed, change.Entry.UID())
	} else {
		s.changed[change.Entry.UID()] = change.Entry.ResourceVersion()
	}
}

// Versions implements soak.Side. A failure is an error of Health, or a difference of the consumer of changes.
func (s *inventorySide) Versions() soak.Versions {
	all := soak.Versions{}
	page, err := s.cache.Query(context.Background(), nil)
	if err == nil {
		err = s.cache.Health()
	}
	if err != nil {
		all[soak.Failure] = map[string]string{"": err.Error()}
	}
	if page == nil {
		return all
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.changed) != len(page.Entries) {
		all[soak.Failure] = map[string]string{"changes": fmt.Sprintf("%d objects instead of %d", len(s.changed), len(page.Entries))}
	}
	for _, entry := range page.Entries {
		obj, err := entry.Object().Object()
		if err == nil {
			err = all.Add(obj)
		}
		if err != nil {
			all[soak.Failure] = map[string]string{entry.Name: err.Error()}
		}
		if s.changed[entry.UID()] != entry.ResourceVersion() {
			all[soak.Failure] = map[string]string{"changes": fmt.Sprintf("%s has resourceVersion %q instead of %q", entry.NamespacedName, s.changed[entry.UID()], entry.ResourceVersion())}
		}
	}
	debug.FreeOSMemory() // of the decoded objects
	return all
}

// Count implements soak.Side.
func (s *inventorySide) Count() (objects int, events int64, trouble error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.changed), s.events.Load(), s.trouble
}

// Stop implements soak.Side.
func (s *inventorySide) Stop() {
	s.cancel()
	s.all.Wait()
	s.cache = nil
	s.changed = nil
}
