package dynamic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"sync/atomic"

	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WatchStream is an accepted watch, opened by [Resource.OpenWatch]. Next must not be called concurrently. Close may be called
// from any goroutine.
type WatchStream[T any] struct {
	resource *Resource
	body     *errorRecorder
	decoder  decoder[T]
	events   *unstructured.WatchDecoder
	err      error // returned by all later calls of Next
	isClosed atomic.Bool
}

// OpenWatch sends a watch request and returns the stream once the server has accepted it. A rejection is a
// *apierrors.StatusError. The watch starts at opts.ResourceVersion. Without it, the stream begins with an ADDED event for each
// existing object, or for the object selected by [Resource.Named]. opts.AllowWatchBookmarks requests bookmarks. The stream ends
// when the server closes it, after some minutes, when ctx ends, or on Close. The caller must call Close. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes.
func (r *Resource) OpenWatch(ctx context.Context, opts *metav1.ListOptions) (*WatchStream[unstructured.Object], error) {
	return openWatchAs(ctx, r, opts, r.objectDecoder)
}

// openWatchAs opens a watch. It calls newDecoder once the server has accepted the watch.
func openWatchAs[T any](ctx context.Context, r *Resource, opts *metav1.ListOptions, newDecoder func() decoder[T]) (*WatchStream[T], error) {
	request, err := r.watchRequest(opts)
	if err != nil {
		return nil, err
	}
	response, err := r.do(ctx, request, false) //nolint:bodyclose // by Close
	if err != nil {
		return nil, err
	}
	body := &errorRecorder{ReadCloser: response.Body}
	decoder := newDecoder()
	events := r.limits().NewWatchDecoder(decoder.interner().Source(body))
	return &WatchStream[T]{resource: r, body: body, decoder: decoder, events: events}, nil
}

// Next waits for and returns the next event. It returns io.EOF, unwrapped, when the server has closed the stream. An ERROR
// event is returned as an error with a *apierrors.StatusError: if apierrors.IsResourceExpired holds, list again. After the end
// of ctx it returns ctx's error, and after Close an error with net.ErrClosed. errors.Is and errors.As find these errors. After
// an error, every call returns the same error.
func (s *WatchStream[T]) Next() (unstructured.Event[T], error) {
	if s.err != nil {
		return unstructured.Event[T]{}, s.err
	}
	event, err := s.decoder.event(s.events)
	switch {
	case s.isClosed.Load():
		s.err = fmt.Errorf("watch %s: the stream is closed: %w", s.resource, net.ErrClosed)
	case err == nil:
		return event, nil
	default:
		s.err = s.endError(err)
	}
	return unstructured.Event[T]{}, s.err
}

// endError returns the error for a stream that ended with err. io.EOF is returned unchanged. Errors other than broken
// connections become an invalidEventError.
func (s *WatchStream[T]) endError(err error) error {
	if err == io.EOF { //nolint:errorlint // a wrapped EOF is a connection that broke, not the end
		return err
	}
	ended := err
	if _, isStatus := errors.AsType[*apierrors.StatusError](err); !isStatus {
		ended = s.resource.decodeError("watch", err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || s.body.err != nil && errors.Is(err, s.body.err) {
		return ended
	}
	return &invalidEventError{ended}
}

// Close closes the connection. A blocked Next returns.
func (s *WatchStream[T]) Close() {
	s.isClosed.Store(true)
	_ = s.body.Close()
}

// Watch yields changes over a single connection, like [Resource.OpenWatch]. A rejection is the only element then. Watch ends
// without an error when the server closes the stream, and otherwise with the error of [WatchStream.Next]. Breaking out of the
// loop closes the connection.
func (r *Resource) Watch(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[unstructured.Event[unstructured.Object], error] {
	return watchAs(ctx, r, opts, r.objectDecoder)
}

func watchAs[T any](ctx context.Context, r *Resource, opts *metav1.ListOptions, newDecoder func() decoder[T]) iter.Seq2[unstructured.Event[T], error] {
	return func(yield func(unstructured.Event[T], error) bool) {
		stream, err := openWatchAs(ctx, r, opts, newDecoder)
		if err != nil {
			yield(unstructured.Event[T]{}, err)
			return
		}
		defer stream.Close()
		for {
			event, err := stream.Next()
			if err == io.EOF { //nolint:errorlint // the end
				return
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

func (r *Resource) watchRequest(opts *metav1.ListOptions) (*transport.Request, error) {
	watchOpts := valueOf(opts)
	watchOpts.Watch = true
	return r.collectionRequest("watch", &watchOpts)
}

// invalidEventError reports invalid content on a working connection: bytes that cannot be decoded, or the Status of a server
// that cannot decode its stored object.
type invalidEventError struct{ error }

func (e *invalidEventError) Unwrap() error { return e.error }

// errorRecorder is a response body. It records the error of its last read.
type errorRecorder struct {
	io.ReadCloser
	err error
}

func (r *errorRecorder) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil {
		r.err = err
	}
	return n, err
}
