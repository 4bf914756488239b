package dynamic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/anykind/anykind/internal/retry"
	"github.com/anykind/anykind/unstructured"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	defaultForEachWorkers = 10
	// maxObjectErrors bounds the errors that ForEach holds.
	maxObjectErrors = 1000
)

// ForEachOptions configure [Resource.ForEach].
type ForEachOptions struct {
	// Workers is the number of objects that are processed at the same time; 0 means 10.
	Workers int
	// OnProgress is called after every object, in the goroutine that processed it and never concurrently.
	OnProgress func(ForEachProgress)
}

// ForEachProgress reports one processed object, and how many there have been.
type ForEachProgress struct {
	// Key is the object's namespace and name, Err the error of its function, if any.
	Key types.NamespacedName
	Err error
	// Done is the number of processed objects, Failed the number of those with an error.
	Done, Failed int
	// Total is the number of objects listed so far plus, where the server counts them, of those on the pages to come. A
	// server does not count them for a list with a selector; the number is final once the last page has been read.
	Total int
}

// ObjectError is the error of one object of several: [Resource.ForEach] joins one for each. It unwraps to its cause.
type ObjectError struct {
	// Key is the object's namespace, "" if it is cluster-scoped, and name.
	Key      types.NamespacedName
	Err      error
	resource string
}

func (e *ObjectError) Error() string {
	name := e.Key.Name
	if e.Key.Namespace != "" {
		name = e.Key.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s: %v", e.resource, quoted(name), e.Err)
}

// Unwrap returns Err.
func (e *ObjectError) Unwrap() error { return e.Err }

// ForEach calls process for every object that list selects, opts.Workers at a time and in no particular order, and returns
// when all calls have returned. process gets the handle in the object's namespace, also if ForEach was called for all
// namespaces:
//
//	err := deployments.AllNamespaces().ForEach(ctx, &metav1.ListOptions{LabelSelector: "app=web"}, nil,
//		func(ctx context.Context, in *dynamic.Resource, obj *unstructured.Object) error {
//			_, err := in.Patch(ctx, obj.GetName(), types.MergePatchType, patch, nil)
//			return err
//		})
//
// An error of process ends nothing. Those of up to 1000 objects are joined, each as an [*ObjectError], and the error says how
// many more failed; OnProgress gets all of them. The error of a list that fails before its end is joined with them.
//
// When ctx ends, no other object is processed; calls of process should return then, as every verb does, and the error wraps
// that of ctx. To stop at the first error, cancel ctx in process or OnProgress.
//
// Objects are as they were listed: a verb may find that one has changed or no longer exists. ForEach holds one page of
// list.Limit objects, 500 by default, and those in process, however long the list is. It reads each page at once, so process
// may take its time. If the server no longer has the list's resourceVersion for the next page, after about five minutes,
// ForEach proceeds by [ExpiryContinue] unless [Resource.Paging] chooses otherwise. To transfer less, call ForEach on a handle
// from [Resource.Metadata].
func (r *Resource) ForEach(ctx context.Context, list *metav1.ListOptions, opts *ForEachOptions,
	process func(ctx context.Context, in *Resource, obj *unstructured.Object) error,
) error {
	options := valueOf(opts)
	if options.Workers <= 0 {
		options.Workers = defaultForEachWorkers
	}
	run := &forEach{resource: r, process: process, onProgress: options.OnProgress, slots: make(chan struct{}, options.Workers)}
	err := run.pages(ctx, list)
	run.wg.Wait()
	return run.result(err)
}

type forEach struct {
	resource   *Resource
	process    func(context.Context, *Resource, *unstructured.Object) error
	onProgress func(ForEachProgress)
	slots      chan struct{} // one element for each object in process
	wg         sync.WaitGroup

	mu                sync.Mutex // held during onProgress
	listed, remaining int
	done, failed      int
	objectErrors      []error
}

// pages lists page after page and starts to process their objects.
func (f *forEach) pages(ctx context.Context, list *metav1.ListOptions) error {
	pager := &listPager[unstructured.Object]{resource: f.resource, opts: valueOf(list)}
	if f.resource.paging.OnExpired == nil {
		proceed := func(error) ExpiryPolicy { return ExpiryContinue }
		pager.resource = f.resource.Paging(&PagingOptions{OnPage: f.resource.paging.OnPage, OnExpired: proceed})
	}
	var stopped error // of ctx, not of the list
	err := pager.run(ctx, func() (more bool, err error) {
		page, err := pager.resource.ListPage(ctx, &pager.opts)
		if err != nil {
			return false, err
		}
		f.mu.Lock()
		f.listed += len(page.Items)
		f.remaining = int(valueOf(page.RemainingItemCount))
		f.mu.Unlock()
		for i, obj := range page.Items {
			page.Items[i] = nil
			if stopped = f.start(ctx, obj); stopped != nil {
				return false, nil //nolint:nilerr // pages returns it
			}
		}
		return pager.endPage(page.ListMeta), nil
	})
	return cmp.Or(stopped, err)
}

// start processes an object in a goroutine of its own, as soon as a slot is free.
func (f *forEach) start(ctx context.Context, obj *unstructured.Object) error {
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
	}
	if err := retry.ContextError(ctx); err != nil { // both may have been ready
		return fmt.Errorf("process %s: %w", f.resource, err)
	}
	in := f.resource
	if namespace := obj.GetNamespace(); namespace != "" {
		in = in.Namespace(namespace)
	}
	f.wg.Go(func() {
		defer func() { <-f.slots }()
		err := f.process(ctx, in, obj)
		f.finish(types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}, err)
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
			f.objectErrors = append(f.objectErrors, &ObjectError{Key: key, Err: err, resource: f.resource.String()})
		}
	}
	if f.onProgress != nil {
		f.onProgress(ForEachProgress{Key: key, Err: err, Done: f.done, Failed: f.failed, Total: f.listed + f.remaining})
	}
}

// result joins the errors of objects with that of the list.
func (f *forEach) result(err error) error {
	all := f.objectErrors
	if more := f.failed - len(all); more > 0 {
		all = append(all, fmt.Errorf("process %s: %d more objects failed (OnProgress gets all errors)", f.resource, more))
	}
	if err != nil {
		all = append(all, err)
	}
	return errors.Join(all...)
}
