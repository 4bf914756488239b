package get

import (
	"cmp"
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// targetWatch follows a target and emits its events.
type targetWatch struct {
	*getCommand

	target resource.Target
	emit   func(watchEvent) error
	cancel context.CancelCauseFunc

	isSynced bool
	// isAccepted is set once the server has accepted a watch. Later denials may pass, as those of a starting server do.
	isAccepted bool
	denied     time.Time           // first denial of a watch
	lastReason string              // of the last warning
	unsorted   []*dynamic.TableRow // the initial list with --sort-by
	columns    []metav1.TableColumnDefinition
}

// followTarget emits the objects of a target and then their changes, until the server rejects the first requests, ctx ends or
// --request-timeout has passed.
func (c *getCommand) followTarget(ctx context.Context, target resource.Target, emit func(watchEvent) error) error {
	if err := c.checkReadable(ctx, target); err != nil {
		return err
	}
	interrupted := ctx
	ctx, stop, err := c.Connection.WithRequestTimeout(ctx)
	if err != nil {
		return err
	}
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &targetWatch{getCommand: c, target: target, emit: emit, cancel: cancel}
	handle := target.Resource.Named(target.Name)
	if c.output.IsTable() {
		include := c.include(target)
		if include == metav1.IncludeNone {
			include = metav1.IncludeMetadata
		}
		err = follow(ctx, handle.Tables(include), w, w.handleRow)
	} else {
		err = follow(ctx, handle, w, w.handleObject)
	}
	if w.isSynced && interrupted.Err() == nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return nil // as in kubectl
	}
	return cmp.Or(context.Cause(ctx), err)
}

// checkReadable reads an object of the target, so that a missing object or a missing permission is reported immediately.
func (c *getCommand) checkReadable(ctx context.Context, target resource.Target) error {
	if target.Name != "" {
		target.Resource = target.Resource.Metadata()
		for _, err := range target.Objects(ctx, nil) {
			return err
		}
	}
	opts := c.listOptions()
	opts.Limit = 1
	_, err := target.Resource.Metadata().ListPage(ctx, opts)
	return err
}

func follow[T any](ctx context.Context, handle *dynamic.Handle[T], w *targetWatch, emit func(dynamic.Change[T]) error) error {
	selected := w.listOptions()
	opts := &dynamic.FollowOptions{
		LabelSelector: selected.LabelSelector, FieldSelector: selected.FieldSelector,
		OnInterruption: w.warn,
		OnProgress: func(string) {
			w.isAccepted = w.isSynced // there may be a list before the first watch
			w.lastReason = ""
		},
	}
	for change, err := range handle.Follow(ctx, opts) {
		switch {
		case err != nil:
			return err
		case change.Type == dynamic.Synced:
			err = w.sync()
		case change.Object != nil && (w.isSynced || !w.watchOnly):
			err = emit(change)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// denialGrace is the time for retries of denials before the server has accepted a watch, as in Follow.
const denialGrace = 2 * time.Second

// warn reports why a watch is resumed. It ends a watch that was never accepted.
func (w *targetWatch) warn(i dynamic.Interruption) {
	err := i.Err
	isDenied := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
	switch {
	case !w.isAccepted && isDenied && w.denied.IsZero():
		w.denied = time.Now()
	case !w.isAccepted && isDenied:
		if time.Since(w.denied) >= denialGrace {
			w.cancel(err)
		}
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || err.Error() == w.lastReason:
	default:
		w.lastReason = err.Error()
		w.Errorf("Warning: the watch of %s is resumed: %v", w.target.Resource.APIResource().GVR.Resource, err)
	}
}

// sync ends the initial list.
func (w *targetWatch) sync() error {
	err := w.output.SortRows(w.unsorted)
	for _, row := range w.unsorted {
		if err == nil {
			err = w.emit(watchEvent{eventType: watch.Added, row: row, listed: true})
		}
	}
	w.unsorted = nil
	w.isSynced = true
	if err != nil {
		return err
	}
	return w.emit(watchEvent{synced: true})
}

func (w *targetWatch) handleObject(change dynamic.Change[unstructured.Object]) error {
	return w.emit(watchEvent{eventType: change.Type, object: change.Object, listed: !w.isSynced})
}

func (w *targetWatch) handleRow(change dynamic.Change[dynamic.TableRow]) error {
	row := change.Object
	if change.FinalStateUnknown {
		row.Columns = w.columns
		for _, column := range row.Columns {
			cell := "<unknown>"
			if column.Format == "name" {
				cell = row.Object.GetName()
			}
			row.Cells = append(row.Cells, cell)
		}
	}
	w.columns = row.Columns
	if !w.isSynced && w.output.SortBy != "" {
		w.unsorted = append(w.unsorted, row)
		return nil
	}
	return w.emit(watchEvent{eventType: change.Type, row: row, listed: !w.isSynced})
}
