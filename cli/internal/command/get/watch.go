package get

import (
	"context"
	"errors"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// watchEvent is an object or table row of a list or watch.
type watchEvent struct {
	target    resource.Target
	eventType watch.EventType
	row       *dynamic.TableRow
	object    *unstructured.Object
	// listed marks the initial list. synced marks its end: the event has no object.
	listed, synced bool
}

// runWatch prints the objects of all targets and then their changes, until ctx is done.
func (c *getCommand) runWatch(ctx context.Context, targets []resource.Target) error {
	if len(targets) == 0 {
		return c.noResources(ctx, targets)
	}
	emit, err := c.watchPrinter(targets)
	if err != nil {
		return err
	}
	interrupted := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var group sync.WaitGroup
	errs := make([]error, len(targets))
	columns := newColumnBarrier(len(targets))
	for i, target := range targets {
		group.Go(func() {
			errs[i] = c.followTarget(ctx, target, func(event watchEvent) error {
				if err := columns.wait(ctx, i, event.row); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				event.target = target
				return emit(event, columns.union())
			})
			if errs[i] != nil {
				cancel()
			}
		})
	}
	group.Wait()
	if interrupted.Err() != nil {
		return &exit.Error{Code: 1} // as in kubectl get -w
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return c.unlessIgnored(err)
		}
	}
	return errors.Join(errs...)
}

// watchPrinter returns a function for writing an event.
func (c *getCommand) watchPrinter(targets []resource.Target) (func(watchEvent, *union) error, error) {
	if !c.output.IsTable() {
		printer, err := c.output.Printer(c.Out)
		if err != nil {
			return nil, err
		}
		return func(event watchEvent, _ *union) error {
			switch {
			case event.synced:
				return nil
			case c.outputWatchEvents:
				return printer.Event(string(event.eventType), event.object)
			}
			return printer.Object(event.object)
		}, nil
	}
	opts := c.tableOptions(targets[0].Resource, false)
	isUnion := hasSeveralMappings(targets)
	if isUnion {
		opts = &print.TableOptions{WithNamespace: c.finder.Selection.AllNamespaces, WithEvents: c.outputWatchEvents}
	}
	table, err := c.output.Table(c.Out, opts)
	if err != nil {
		return nil, err
	}
	return func(event watchEvent, columns *union) error {
		if event.synced {
			return table.Flush()
		}
		row := event.row
		if isUnion {
			columns.add(row.Columns)
			row = columns.row(row, strings.ToLower(event.target.Resource.APIResource().GVK.GroupKind().String()))
		}
		if err := table.Event(string(event.eventType), row); err != nil {
			return err
		}
		if event.listed {
			return nil
		}
		return table.Flush()
	}, nil
}

func hasSeveralMappings(targets []resource.Target) bool {
	for _, target := range targets {
		if target.Resource.APIResource() != targets[0].Resource.APIResource() {
			return true
		}
	}
	return false
}
