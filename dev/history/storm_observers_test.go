package history

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/controller"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// observe starts streams, caches and operators. The consumers of the second process are slow.
func (s *storm) observe() {
	for n, p := range s.processes {
		slow := time.Duration(n) * 20 * time.Millisecond
		for _, k := range []kind{configMaps, notes} {
			name := fmt.Sprintf("%s-%d", k.observed, n)
			s.follow(p, k, "follow-"+name, slow/4)
			s.startCache(p, k, name, slow, nil)
			if n == 0 {
				s.operate(p, k, "operator-"+name)
			}
		}
	}
	s.startCache(s.processes[1], configMaps, "namespaces", 0, s.namespaces)
}

func (s *storm) follow(p *process, k kind, name string, slow time.Duration) {
	handle := s.proxied(p, k)
	o := s.observer(p, Follower, name, k, s.namespaces[0]+"/")
	opts := &dynamic.FollowOptions{
		OnProgress: func(resourceVersion string) {
			o.Note("", "", Observation{Kind: Progress, Revision: Revision(resourceVersion)})
		},
		OnInterruption: func(i dynamic.Interruption) {
			if i.Relist {
				o.Note("", "", Observation{Kind: Relist})
			}
		},
	}
	s.observers.Go(func() {
		for change, err := range handle.Follow(s.observing, opts) {
			if err != nil {
				assert.ErrorIs(s.t, err, context.Canceled)
				return
			}
			o.Change(change.Type, change.Object, change.FinalStateUnknown)
			time.Sleep(slow)
		}
	})
}

// observedCache is a cache with consumers and a reader.
type observedCache struct {
	*cache.Cache[unstructured.Object]

	process    *process
	kind       kind
	name       string
	namespaces string // the prefix of the cached ones
}

func (s *storm) startCache(p *process, k kind, name string, slow time.Duration, namespaces []string) {
	c := observedCache{cache.New(s.proxied(p, k), &cache.Options[unstructured.Object]{Namespaces: namespaces}), p, k, name, s.namespaces[0] + "/"}
	if namespaces != nil {
		c.namespaces = s.namespaces[0][:len(s.namespaces[0])-1]
	}
	s.caches = append(s.caches, c)
	for _, delay := range []time.Duration{0, slow} {
		o := s.observer(p, Consumer, fmt.Sprintf("changes-%s-%s", name, delay), k, c.namespaces)
		o.Note("", "", Observation{Kind: Relist})
		s.observers.Go(func() {
			for change := range c.Changes(s.observing) {
				o.Change(change.Type, change.Object, change.FinalStateUnknown)
				time.Sleep(rand.N(delay + 1))
			}
		})
	}
	s.observers.Go(func() { assert.ErrorIs(s.t, c.Run(s.observing), context.Canceled) })
	s.observers.Go(func() { c.read(s) })
}

// read reads random objects.
func (c observedCache) read(s *storm) {
	o := s.observer(c.process, Reader, "reader-"+c.name, c.kind, c.namespaces)
	names := s.load.Names()
	for sleep(s.observing, 4*time.Millisecond) == nil {
		c.readOne(o, s.namespaces[0], names[rand.IntN(len(names))])
	}
}

func (c observedCache) readOne(o *Observer, namespace, name string) {
	begin := o.Now()
	if obj, found := c.Get(namespace, name); found {
		o.Object(obj, Observation{Begin: begin, Kind: Read})
	} else {
		o.Note(namespace+"/"+name, "", Observation{Begin: begin, Kind: Read})
	}
}

// snapshot reads all objects.
func (c observedCache) snapshot(s *storm) {
	o := s.observer(c.process, Snapshot, "list-"+c.name, c.kind, c.namespaces)
	for _, obj := range c.List("", nil) {
		o.Object(obj, Observation{Kind: Read})
	}
}

func (s *storm) operate(p *process, k kind, name string) {
	o := s.observer(p, Operator, name, k, s.namespaces[0]+"/")
	operator := controller.NewOperator(&controller.Options{Workers: 2, Logger: slog.New(slog.DiscardHandler)})
	operator.Watch(s.proxied(p, k), func(_ context.Context, change cache.Change[unstructured.Object]) error {
		o.Change(change.Type, change.Object, change.FinalStateUnknown)
		time.Sleep(rand.N(10 * time.Millisecond))
		return nil
	})
	s.observers.Go(func() { assert.ErrorIs(s.t, operator.Run(s.observing), context.Canceled) })
}
