package dynamic

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Watch yields what changes, over one connection, from opts.ResourceVersion on; without one it begins with an ADDED
// event for each object that there is. It ends without an error when the server closes the stream, which it does after
// some minutes, and otherwise with one: a *apierrors.StatusError where the server says why (apierrors.IsResourceExpired
// when the resourceVersion is too old: list again), ctx's where ctx ended it. An ERROR event is that error and is not
// yielded. Bookmarks come where opts.AllowWatchBookmarks asks for them. Breaking out of the loop closes the connection.
// See https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes.
func (r *Resource) Watch(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[unstructured.Event[unstructured.Object], error] {
	return func(yield func(unstructured.Event[unstructured.Object], error) bool) {
		request, err := r.watchRequest(opts)
		if err != nil {
			yield(unstructured.Event[unstructured.Object]{}, err)
			return
		}
		response, err := r.conn.Do(ctx, request)
		if err != nil {
			yield(unstructured.Event[unstructured.Object]{}, err)
			return
		}
		defer response.Body.Close()
		events := unstructured.NewWatchDecoder(response.Body)
		for {
			event, err := events.Next()
			if err == io.EOF { //nolint:errorlint // a wrapped EOF is a connection that broke, not the end
				return
			}
			if err == nil && event.Type == watch.Error {
				err = errorOf(event.Object)
			} else if err != nil {
				err = fmt.Errorf("watch %s: GET %s%s: %w", r, r.conn.Server(), request.Path, err)
			}
			if err != nil {
				yield(unstructured.Event[unstructured.Object]{}, err)
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	}
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

// errorOf is the error that an ERROR event carries.
func errorOf(obj *unstructured.Object) error {
	status, err := statusOf(obj)
	if err != nil {
		return err
	}
	return apierrors.FromObject(status)
}
