// Command anykind is an observer with this repository's cache, or with Follow.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dev/peers/observe"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// Modes of the observer, beside the cache.
const (
	follow = "follow"
	audit  = "audit"
)

func main() { observe.Main(run) }

func run(ctx context.Context, p *observe.Program) (list func() []observe.Event, block func(), err error) {
	client, err := dynamic.Connect(ctx, &transport.Config{Server: p.Server, Options: transport.Options{Protobuf: p.Protobuf}})
	if err != nil {
		return nil, nil, err
	}
	name := "configmaps"
	if p.Custom {
		name = "widgets.example.com"
	}
	handle, err := client.Resource(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	handle = handle.AllNamespaces()
	if p.Mode == follow {
		go followAll(ctx, p, handle)
		return func() []observe.Event { return nil }, func() {}, nil
	}
	return runCache(ctx, p, handle)
}

func followAll(ctx context.Context, p *observe.Program, handle *dynamic.Resource) {
	for change, err := range handle.Follow(ctx, nil) {
		if err != nil {
			return
		}
		time.Sleep(p.Slow)
		emit(p, change.Type, change.Object, change.FinalStateUnknown)
	}
}

func runCache(ctx context.Context, p *observe.Program, handle *dynamic.Resource) (list func() []observe.Event, block func(), err error) {
	opts := &cache.Options[unstructured.Object]{
		ResyncPeriod:   p.Resync,
		OnInterruption: func(i dynamic.Interruption) { fmt.Fprintln(os.Stderr, i.Err) },
		Indexes: map[string]func(*unstructured.Object) []string{"slow": func(*unstructured.Object) []string {
			time.Sleep(p.Slow)
			return nil
		}},
	}
	if p.Mode == audit {
		opts.Audit = &cache.Audit{Interval: time.Second, OnResult: func(r cache.AuditResult) { fmt.Fprintf(os.Stderr, "%+v\n", r) }}
	}
	c := cache.New(handle, opts)
	go func() {
		for change := range c.Changes(ctx) {
			emit(p, change.Type, change.Object, change.FinalStateUnknown)
		}
	}()
	go func() { fmt.Fprintln(os.Stderr, c.Run(ctx)) }()
	list = func() (events []observe.Event) {
		for _, obj := range c.List("", nil) {
			events = append(events, event(observe.Read, obj))
		}
		return events
	}
	return list, func() { c.List("", blockingSelector{labels.Everything(), p}) }, nil
}

// blockingSelector blocks its caller, a reader.
type blockingSelector struct {
	labels.Selector
	program *observe.Program
}

// Empty reports false to have Matches called.
func (blockingSelector) Empty() bool { return false }

func (s blockingSelector) Matches(labels.Labels) bool {
	s.program.Wait()
	return true
}

func emit(p *observe.Program, changeType watch.EventType, obj *unstructured.Object, isUnknown bool) {
	switch {
	case changeType == watch.Added:
		p.Emit(event(observe.Added, obj))
	case changeType == watch.Modified:
		p.Emit(event(observe.Modified, obj))
	case changeType == watch.Deleted && isUnknown:
		p.Emit(event(observe.DeletedUnknown, obj))
	case changeType == watch.Deleted:
		p.Emit(event(observe.Deleted, obj))
	case changeType == dynamic.Synced:
		p.Emit(observe.Event{Kind: observe.Synced})
	default:
		p.Emit(observe.Event{Kind: fmt.Sprint(changeType)})
	}
}

func event(kind string, obj *unstructured.Object) observe.Event {
	return observe.Event{
		Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: string(obj.GetUID()), Version: obj.GetResourceVersion(),
	}
}
