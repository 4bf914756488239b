package dynamic

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"

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
func (r *Resource) Watch(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[unstructured.Event, error] {
	return func(yield func(unstructured.Event, error) bool) {
		response, err := r.openWatch(ctx, opts)
		if err != nil {
			yield(unstructured.Event{}, err)
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
				err = fmt.Errorf("watch %s: GET %s%s: %w", r, r.conn.Server(), response.Request.URL.Path, err)
			}
			if err != nil {
				yield(unstructured.Event{}, err)
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	}
}

func (r *Resource) openWatch(ctx context.Context, opts *metav1.ListOptions) (*http.Response, error) {
	path, err := r.collectionPath("watch")
	if err != nil {
		return nil, err
	}
	watching := metav1.ListOptions{}
	if opts != nil {
		watching = *opts
	}
	watching.Watch = true
	query, err := queryOf(&watching)
	if err != nil {
		return nil, err
	}
	return r.conn.Do(ctx, &transport.Request{Method: http.MethodGet, Path: path, Query: query})
}

// errorOf is the error that an ERROR event carries.
func errorOf(obj *unstructured.Object) error {
	status, err := statusOf(obj)
	if err != nil {
		return err
	}
	return apierrors.FromObject(status)
}
