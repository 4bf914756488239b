package dynamic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/objectkey"
	"github.com/anykind/anykind/internal/retry"
)

const (
	defaultForEachWorkers = 10
	// maxObjectErrors bounds the errors collected by ForEach.
	maxObjectErrors = 1000
)

// ForEachOptions configure [Handle.ForEach].
type ForEachOptions struct {
	// Workers is the number of concurrent calls of process. 0 means 10.
	Workers int
	// OnProgress is called after every object, in the worker's goroutine. Calls are serialized.
	OnProgress func(ForEachProgress)
}

// ForEachProgress reports a processed object and the totals so far.
type ForEachProgress struct {
	// Key is the object's namespace and name. Err is the error of process, if any.
	Key types.NamespacedName
	Err error
	// Done is the number of processed objects, including Failed. Failed is the number of objects with an error.
	Done, Failed int
	// Total is listed + remainingItemCount. The server does not report remainingItemCount for a list with a selector, so Total
	// is only final after the last page.
	Total int
}

// ObjectError is the error of a single object. [Handle.ForEach] joins ObjectErrors. It unwraps to its cause.
type ObjectError struct {
	// Key is the object's namespace and name. Namespace is "" for a cluster-scoped object.
	Key      types.NamespacedName
	Err      error
	resource string
}

func (e *ObjectError) Error() string {
	return fmt.Sprintf("%s %s: %v", e.resource, quoted(objectkey.Text(e.Key)), e.Err)
}

// Unwrap returns Err.
func (e *ObjectError) Unwrap() error { return e.Err }

// ForEach calls process for every object selected by list, with opts.Workers concurrent calls and in no particular order. It
// returns after all calls have returned. process gets the handle in the object's namespace, also if r is a handle on all
// namespaces:
//
//	err := deployments.AllNamespaces().ForEach(ctx, &metav1.ListOptions{LabelSelector: "app=web"}, nil,
//		func(ctx context.Context, in *dynamic.Resource, obj *unstructured.Object) error {
//			_, err := in.Patch(ctx, obj.GetName(), types.MergePatchType, patch, nil)
//			return err
//		})
//
// An error of process does not stop ForEach. ForEach joins the errors of up to 1000 objects, each as an [*ObjectError], and the
// number of further failed objects. OnProgress gets all errors. An error of the list is joined with them.
//
// When ctx ends, no further objects are processed. process should return then, as every verb does. The error wraps ctx's error.
// To stop at the first error, cancel ctx in process or OnProgress.
//
// Objects are in the state of the list: meanwhile they may have changed or been deleted. ForEach holds at most a page of
// list.Limit objects, 500 by default, and the objects in process, regardless of the length of the list. It reads each page at
// once, so process may be slow. If the list's resourceVersion expires before the next page, after about five minutes, ForEach
// applies [ExpiryContinue] unless [Handle.WithPageOptions] sets a different policy. To transfer less, call ForEach on a
// handle from [Handle.Metadata].
func (h *Handle[T]) ForEach(ctx context.Context, list *metav1.ListOptions, opts *ForEachOptions,
	process func(ctx context.Context, in *Handle[T], obj *T) error,
) error {
	options := valueOf(opts)
	if options.Workers <= 0 {
		options.Workers = defaultForEachWorkers
	}
	run := &forEach{endpoint: &h.endpoint, form: h.codec.form(), onProgress: options.OnProgress, slots: make(chan struct{}, options.Workers)}
	run.process = func(ctx context.Context, in *endpoint, item item) error {
		obj, err := h.codec.decode(in, item)
		if err != nil {
			return err
		}
		return process(ctx, &Handle[T]{*in, h.codec}, obj)
	}
	err := run.pages(ctx, list)
	run.wg.Wait()
	return run.result(err)
}

type forEach struct {
	endpoint   *endpoint
	form       form
	process    func(context.Context, *endpoint, item) error
	onProgress func(ForEachProgress)
	slots      chan struct{} // an element for each object in process
	wg         sync.WaitGroup

	mu                sync.Mutex // held during onProgress
	listed, remaining int
	done, failed      int
	objectErrors      []error
}

// pages lists page by page and starts the processing of the objects.
func (f *forEach) pages(ctx context.Context, list *metav1.ListOptions) error {
	pager := &listPager{pageRequest: pageRequest{endpoint: f.endpoint, opts: valueOf(list)}}
	if f.endpoint.pageOptions.OnExpired == nil {
		continued := *f.endpoint
		continued.pageOptions.OnExpired = func(error) ExpiryPolicy { return ExpiryContinue }
		pager.endpoint = &continued
	}
	var stopped error // by ctx, not by the list
	err := pager.run(ctx, func() (more bool, err error) {
		var items []item
		_, meta, err := pager.endpoint.listPage(ctx, f.form, &pager.opts, func(item item) error {
			items = append(items, item)
			return nil
		})
		if err != nil {
			return false, err
		}
		f.mu.Lock()
		f.listed += len(items)
		f.remaining = int(valueOf(meta.RemainingItemCount))
		f.mu.Unlock()
		for i, one := range items {
			items[i] = item{}
			if stopped = f.start(ctx, one); stopped != nil {
				return false, nil //nolint:nilerr // pages returns it
			}
		}
		return pager.endPage(meta), nil
	})
	return cmp.Or(stopped, err)
}

// start processes an object in a goroutine as soon as a slot is free.
func (f *forEach) start(ctx context.Context, one item) error {
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
	}
	if err := retry.ContextError(ctx); err != nil { // select may have chosen the slot
		return fmt.Errorf("process %s: %w", f.endpoint, err)
	}
	meta := one.meta()
	key := types.NamespacedName{Namespace: meta.GetNamespace(), Name: meta.GetName()}
	in := f.endpoint
	if key.Namespace != "" {
		in = in.inNamespace(key.Namespace)
	}
	f.wg.Go(func() {
		defer func() { <-f.slots }()
		f.finish(key, f.process(ctx, in, one))
	})
	return nil
}

func (f *forEach) finish(key types.NamespacedName, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done++
	if err != nil {
		f.failed++
		if len(f.objectErrors) < maxObjectErrors {
			f.objectErrors = append(f.objectErrors, &ObjectError{Key: key, Err: err, resource: f.endpoint.String()})
		}
	}
	if f.onProgress != nil {
		f.onProgress(ForEachProgress{Key: key, Err: err, Done: f.done, Failed: f.failed, Total: f.listed + f.remaining})
	}
}

// result joins the errors of the objects and the list.
func (f *forEach) result(err error) error {
	all := f.objectErrors
	if more := f.failed - len(all); more > 0 {
		all = append(all, fmt.Errorf("process %s: %d more objects failed (OnProgress gets all errors)", f.endpoint, more))
	}
	if err != nil {
		all = append(all, err)
	}
	return errors.Join(all...)
}
