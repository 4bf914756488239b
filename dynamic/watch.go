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

// WatchStream is a watch that the server has accepted: [Resource.OpenWatch] opens one. Next is for one goroutine at a time,
// Close for any.
type WatchStream[T any] struct {
	resource *Resource
	body     *errorRecorder
	decoder  decoder[T]
	events   *unstructured.WatchDecoder
	err      error // that ended the stream
	isClosed atomic.Bool
}

// OpenWatch sends the request of a watch and returns the stream once the server has accepted it, or the server's rejection
// as a *apierrors.StatusError. It watches from opts.ResourceVersion on; without one the stream begins with an ADDED event
// for each existing object, or the one that [Resource.Named] chooses. opts.AllowWatchBookmarks requests bookmarks. The
// stream lasts until the server closes it, which it does after some minutes, until ctx ends, or until Close, which must be
// called. See https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes.
func (r *Resource) OpenWatch(ctx context.Context, opts *metav1.ListOptions) (*WatchStream[unstructured.Object], error) {
	return openWatchAs(ctx, r, opts, r.objectDecoder)
}

// openWatchAs calls newDecoder once the server has accepted the watch.
func openWatchAs[T any](ctx context.Context, r *Resource, opts *metav1.ListOptions, newDecoder func() decoder[T]) (*WatchStream[T], error) {
	request, err := r.watchRequest(opts)
	if err != nil {
		return nil, err
	}
	response, err := r.do(ctx, request, false) //nolint:bodyclose // by Close
	if err != nil {
		return nil, err
	}
	body, decoder := &errorRecorder{ReadCloser: response.Body}, newDecoder()
	events := r.limits().NewWatchDecoder(decoder.interner().Source(body))
	return &WatchStream[T]{resource: r, body: body, decoder: decoder, events: events}, nil
}

// Next waits for the next event and returns it. The error is io.EOF itself if the server has closed the stream; a
// *apierrors.StatusError, found by errors.As, if it has sent the reason in an ERROR event, which is not returned otherwise
// (apierrors.IsResourceExpired if the resourceVersion is too old: list again); ctx's if that has ended; and net.ErrClosed, found by
// errors.Is, after Close. After an error there are no more events, and Next returns it again.
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

// endError returns the error for a stream that ended with err: io.EOF and a Status of the server as they are, and an
// invalidEventError unless the connection broke.
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

// Close closes the connection. A Next that waits returns.
func (s *WatchStream[T]) Close() {
	s.isClosed.Store(true)
	_ = s.body.Close()
}

// Watch yields changes over one connection as [Resource.OpenWatch] does, whose rejection is then the only error. It ends
// without an error when the server closes the stream, and otherwise with that of [WatchStream.Next]. Breaking out of the loop
// closes the connection.
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

// invalidEventError is the error of a watch whose connection worked and whose content is not an event: bytes that cannot
// be decoded, or the Status of a server that cannot decode what it stored.
type invalidEventError struct{ error }

func (e *invalidEventError) Unwrap() error { return e.error }

// errorRecorder is the body of a response and the error of its last read.
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
