package get

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			errs[i] = c.watchTarget(ctx, target, func(event watchEvent) error {
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

// watchTarget emits the objects of a target and then their changes. It resumes a closed or broken watch after a backoff. If the
// resourceVersion has expired, it lists and emits all objects again. It ends with any other error.
func (c *getCommand) watchTarget(ctx context.Context, target resource.Target, emit func(watchEvent) error) error {
	for first := true; ; first = false {
		opts := c.finder.Selection.ListOptions()
		opts.Limit = 0 // a watch has no pages
		opts.AllowWatchBookmarks = true
		var err error
		opts.ResourceVersion, err = c.watchList(ctx, target, emit, c.watchOnly && first)
		if err != nil {
			return err
		}
		resume := &watchBackoff{}
		for err == nil {
			began := time.Now()
			err = c.watchOnce(ctx, target, opts, emit)
			var broken *brokenWatchError
			if errors.As(err, &broken) {
				c.Errorf("Warning: the watch of %s is resumed: %v", target.Resource.APIResource().GVR.Resource, broken.err)
				err = nil
			}
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				return nil // --request-timeout ends the watch, as in kubectl
			}
			if err == nil {
				err = resume.wait(ctx, time.Since(began))
			}
		}
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return err
		}
	}
}

// watchList emits the existing objects unless silent is set, and returns the resourceVersion for the watch.
func (c *getCommand) watchList(ctx context.Context, target resource.Target, emit func(watchEvent) error, silent bool) (string, error) {
	if target.Name != "" { // a missing object cannot be watched
		if _, err := target.Resource.Metadata().Get(ctx, target.Name, nil); err != nil {
			return "", err
		}
	}
	version := ""
	opts := c.listOptions()
	handle := target.Resource.Named(target.Name).WithPageOptions(&dynamic.PageOptions{
		OnPage: func(meta metav1.ListMeta) { version = meta.ResourceVersion },
	})
	if silent {
		opts.Limit = 1
		page, err := handle.Metadata().ListPage(ctx, opts)
		if err != nil {
			return "", err
		}
		return page.ResourceVersion, nil
	}
	if !c.output.IsTable() {
		for obj, err := range handle.List(ctx, opts) {
			if err != nil {
				return "", err
			}
			if err := emit(watchEvent{eventType: watch.Added, object: obj, listed: true}); err != nil {
				return "", err
			}
		}
		return version, emit(watchEvent{synced: true})
	}
	part := tablePart{target: target, rows: handle.Tables(c.include(target)).List(ctx, opts)}
	var errs []error
	for row, err := range c.sortedRows([]tablePart{part}, &errs) {
		if err != nil {
			return "", err
		}
		if err := emit(watchEvent{eventType: watch.Added, row: row, listed: true}); err != nil {
			return "", err
		}
	}
	if len(errs) > 0 {
		return "", errs[0]
	}
	return version, emit(watchEvent{synced: true})
}

// watchOnce emits the changes of a watch until the server closes it, and sets opts to resume it.
func (c *getCommand) watchOnce(ctx context.Context, target resource.Target, opts *metav1.ListOptions, emit func(watchEvent) error) error {
	handle := target.Resource.Named(target.Name)
	if !c.output.IsTable() {
		return watchFrom(ctx, handle, opts, func(event unstructured.WatchEvent[unstructured.Object]) (string, error) {
			if event.Type == watch.Bookmark {
				return event.Object.GetResourceVersion(), nil
			}
			return event.Object.GetResourceVersion(), emit(watchEvent{eventType: event.Type, object: event.Object})
		})
	}
	return watchFrom(ctx, handle.Tables(c.include(target)), opts, func(event unstructured.WatchEvent[dynamic.TableRow]) (string, error) {
		if event.Type == watch.Bookmark || event.Object.Cells == nil {
			return event.Object.ResourceVersion, nil
		}
		return event.Object.ResourceVersion, emit(watchEvent{eventType: event.Type, row: event.Object})
	})
}

// watchFrom calls handle, which returns the resourceVersion to resume from, for every event until the server closes the stream.
func watchFrom[T any](
	ctx context.Context, of *dynamic.Handle[T], opts *metav1.ListOptions, handle func(unstructured.WatchEvent[T]) (resourceVersion string, err error),
) error {
	for event, err := range of.Watch(ctx, opts) {
		if err != nil {
			return brokenWatch(err)
		}
		resourceVersion, err := handle(event)
		if err != nil {
			return err
		}
		opts.ResourceVersion = cmp.Or(resourceVersion, opts.ResourceVersion)
	}
	return nil
}
