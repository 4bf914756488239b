package get

import (
	"context"
	"errors"
	"sync"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/print"
)

// contextWatch prints the events of several contexts.
type contextWatch struct {
	*contextPrinter

	cancel  context.CancelFunc
	objects *print.Printer // nil for tables

	mu  sync.Mutex
	err error // of a write
}

// watchContexts prints the objects of several contexts and then their changes, until ctx is done. A context with an error ends no others.
func (c *getCommand) watchContexts(ctx context.Context, args []string) error {
	interrupted := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &contextWatch{contextPrinter: &contextPrinter{getCommand: c, names: c.contexts}, cancel: cancel}
	if !c.output.IsTable() {
		var err error
		if w.objects, err = withContextColumn(c.output).Printer(c.Out); err != nil {
			return err
		}
	}
	var group sync.WaitGroup
	for _, name := range c.contexts {
		group.Go(func() {
			err := c.watchContext(ctx, name, args, func(event watchEvent) error { return w.emit(name, event) })
			w.mu.Lock()
			defer w.mu.Unlock()
			if err != nil && ctx.Err() == nil {
				w.failed = true
				c.Errorf("context %s: %s", name, exit.Message(err))
			}
		})
	}
	group.Wait()
	switch {
	case w.err != nil:
		return w.err
	case w.failed || interrupted.Err() != nil:
		return &exit.Error{Code: 1}
	}
	return nil
}

var errOneResource = errors.New("--watch with --contexts needs objects of one resource type")

// watchContext emits the events of a context over a connection of its own.
func (c *getCommand) watchContext(ctx context.Context, name string, args []string, emit func(watchEvent) error) error {
	own := c.forContext(name)
	defer own.Connection.Close()
	targets, err := own.finder.Targets(ctx, args)
	if err != nil {
		return err
	}
	if len(targets) == 0 || hasSeveralMappings(targets) {
		return errOneResource
	}
	errs := make([]error, len(targets))
	var group sync.WaitGroup
	for i, target := range targets {
		group.Go(func() {
			errs[i] = own.followTarget(ctx, target, func(event watchEvent) error {
				event.target = target
				return emit(event)
			})
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// emit prints an event. An error of the output ends all watches.
func (w *contextWatch) emit(name string, event watchEvent) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		if w.err = w.print(name, event); w.err != nil {
			w.cancel()
		}
	}
	return w.err
}

func (w *contextWatch) print(name string, event watchEvent) error {
	if w.objects != nil {
		return w.printObject(name, event)
	}
	if event.synced {
		return w.flush()
	}
	if err := w.use(w.tableOptions(event.target.Resource, false)); err != nil {
		return err
	}
	w.table.SetContext(name)
	if err := w.table.Event(string(event.eventType), event.row); err != nil || event.listed {
		return err
	}
	return w.flush()
}

func (w *contextWatch) printObject(name string, event watchEvent) error {
	if event.synced {
		return nil
	}
	markContext(event.object, name)
	switch {
	case w.outputWatchEvents:
		return w.objects.Event(string(event.eventType), event.object)
	case w.output.Output == "name":
		return w.printContextName(w.objects, event.object)
	}
	return w.objects.Object(event.object)
}
