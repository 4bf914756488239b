package dynamic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Watch yields what changes, over one connection, from opts.ResourceVersion on; without one it begins with an ADDED
// event for each object that there is. It ends without an error when the server closes the stream, which it does after
// some minutes, and otherwise with one: a *apierrors.StatusError where the server says why (apierrors.IsResourceExpired
// when the resourceVersion is too old: list again), ctx's where ctx ended it. An ERROR event is that error and is not
// yielded. Bookmarks come where opts.AllowWatchBookmarks asks for them. Breaking out of the loop closes the connection.
// See https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes.
func (r *Resource) Watch(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[unstructured.Event[unstructured.Object], error] {
	return watchAs(ctx, r, opts, r.objects)
}

// watchAs yields the events of a watch as begin's reader reads them; each run through the watch has a reader of its own.
func watchAs[T any](ctx context.Context, r *Resource, opts *metav1.ListOptions, begin func() reader[T]) iter.Seq2[unstructured.Event[T], error] {
	return func(yield func(unstructured.Event[T], error) bool) {
		request, err := r.watchRequest(opts)
		if err != nil {
			yield(unstructured.Event[T]{}, err)
			return
		}
		response, err := r.do(ctx, request, single)
		if err != nil {
			yield(unstructured.Event[T]{}, err)
			return
		}
		defer response.Body.Close()
		body := &witness{Reader: response.Body}
		events, read := unstructured.NewWatchDecoder(body), begin()
		for {
			event, err := read.event(events)
			if err == io.EOF { //nolint:errorlint // a wrapped EOF is a connection that broke, not the end
				return
			}
			if err != nil {
				broken := r.brokenWatch(request, err)
				if body.clears(err) {
					broken = &noEventError{broken}
				}
				yield(unstructured.Event[T]{}, broken)
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	}
}

// brokenWatch is the error of a watch that ended otherwise than it should, unless the server has said why.
func (r *Resource) brokenWatch(request *transport.Request, err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return err
	}
	return fmt.Errorf("watch %s: GET %s%s: %w", r, r.conn.Server(), request.Path, err)
}

// watchRequest is the request for the changes that opts select, checked.
func (r *Resource) watchRequest(opts *metav1.ListOptions) (*transport.Request, error) {
	watching := metav1.ListOptions{}
	if opts != nil {
		watching = *opts
	}
	watching.Watch = true
	return r.collectionRequest("watch", &watching)
}
