package dynamic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/reflector"
	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// WatchStream is an accepted watch, opened by [Handle.OpenWatch]. Next must not be called concurrently. Close may be called
// from any goroutine.
type WatchStream[T any] struct {
	stream *watchStream
	codec  codec[T]
}

// OpenWatch sends a watch request and returns the stream once the server has accepted it. A rejection is a
// *apierrors.StatusError. The watch starts at opts.ResourceVersion. Without it, the stream begins with an ADDED event for each
// existing object, or for the object selected by [Handle.Named]. opts.AllowWatchBookmarks requests bookmarks. The stream ends
// when the server closes it, after some minutes, when ctx ends, or on Close. The caller must call Close. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes.
func (h *Handle[T]) OpenWatch(ctx context.Context, opts *metav1.ListOptions) (*WatchStream[T], error) {
	e := &h.endpoint
	version := valueOf(opts).ResourceVersion
	if version == "" || version == "0" || valueOf(valueOf(opts).SendInitialEvents) {
		e = e.withJSON() // no resourceVersion resumes the initial events
	}
	stream, err := e.openWatch(ctx, h.codec.form(), nil, opts)
	if err != nil {
		return nil, err
	}
	if stream.isProtobuf {
		resumed := valueOf(opts) // the caller may change opts
		ctx, stream.cancelReopen = context.WithCancel(ctx)
		stream.reopen = func(version string) (*watchStream, error) {
			resumed.ResourceVersion = cmp.Or(version, resumed.ResourceVersion)
			return e.openWatch(ctx, h.codec.form(), nil, &resumed)
		}
	}
	return &WatchStream[T]{stream, h.codec}, nil
}

// Next waits for and returns the next event. It returns io.EOF, unwrapped, when the server has closed the stream. An ERROR
// event is returned as an error with a *apierrors.StatusError: if apierrors.IsResourceExpired holds, list again. After the end
// of ctx it returns ctx's error, and after Close an error with net.ErrClosed. errors.Is and errors.As find these errors. After
// an error, every call returns the same error.
func (s *WatchStream[T]) Next() (unstructured.WatchEvent[T], error) {
	event, err := s.stream.next()
	if err != nil {
		return unstructured.WatchEvent[T]{}, err
	}
	obj, err := s.codec.decode(s.stream.endpoint, event.item)
	if err != nil {
		return unstructured.WatchEvent[T]{}, s.stream.fail(err)
	}
	return unstructured.WatchEvent[T]{Type: event.eventType, Object: obj}, nil
}

// Close closes the connection. A blocked Next returns.
func (s *WatchStream[T]) Close() { s.stream.close() }

// Watch yields changes over a single connection, like [Handle.OpenWatch]. A rejection is the only element then. Watch ends
// without an error when the server closes the stream, and otherwise with the error of [WatchStream.Next]. Breaking out of the
// loop closes the connection.
func (h *Handle[T]) Watch(ctx context.Context, opts *metav1.ListOptions) iter.Seq2[unstructured.WatchEvent[T], error] {
	return func(yield func(unstructured.WatchEvent[T], error) bool) {
		stream, err := h.OpenWatch(ctx, opts)
		if err != nil {
			yield(unstructured.WatchEvent[T]{}, err)
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

// watchStream is an accepted watch whose objects are not converted.
type watchStream struct {
	endpoint   *endpoint
	form       form
	interner   *jsonread.Interner // or nil
	events     eventReader        // nil while the stream is suspended
	isProtobuf bool
	err        error                                      // returned by all later calls of next
	version    string                                     // of the last event, if reopen is set
	reopen     func(version string) (*watchStream, error) // opens a watch from version on; nil for JSON, or if the caller does that
	// cancelReopen cancels reopen. It is set with reopen.
	cancelReopen context.CancelFunc

	mu       sync.Mutex // guards body and isClosed
	body     *errorRecorder
	isClosed bool
}

// openWatch opens a watch. interner may be nil.
func (e *endpoint) openWatch(ctx context.Context, form form, interner *jsonread.Interner, opts *metav1.ListOptions) (*watchStream, error) {
	request, err := e.watchRequest(opts)
	if err != nil {
		return nil, err
	}
	response, err := e.do(ctx, request, false) //nolint:bodyclose // by close
	if err != nil {
		return nil, err
	}
	body := &errorRecorder{ReadCloser: response.Body}
	form = formOf(form, response.Header)
	return &watchStream{
		endpoint: e, form: form, interner: interner, body: body,
		events: form.readEvents(e, body, interner), isProtobuf: isProtobuf(response.Header),
	}, nil
}

func (s *watchStream) next() (itemEvent, error) {
	if s.err != nil {
		return itemEvent{}, s.err
	}
	if s.events == nil {
		s.events = s.form.readEvents(s.endpoint, s.body, s.interner)
	}
	event, err := s.events.next()
	if err != nil && s.endpoint.fallBackToJSON(err) && s.reopen != nil {
		if err = s.resume(); err == nil {
			event, err = s.events.next()
		}
	}
	if err != nil || s.hasBeenClosed() {
		return itemEvent{}, s.fail(err)
	}
	if s.reopen != nil {
		s.version = event.item.meta().GetResourceVersion()
	}
	return event, nil
}

// resume replaces the response by one as JSON, from the last event on.
func (s *watchStream) resume() error {
	resumed, err := s.reopen(s.version)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.body.Close()
	s.events = resumed.events
	s.body = resumed.body
	if s.isClosed {
		_ = s.body.Close()
	}
	return nil
}

func (s *watchStream) hasBeenClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isClosed
}

// fail ends the stream with err, the error of an event, or because it is closed.
func (s *watchStream) fail(err error) error {
	if s.hasBeenClosed() {
		s.err = fmt.Errorf("watch %s: the stream is closed: %w", s.endpoint, net.ErrClosed)
	} else {
		s.err = s.endError(err)
	}
	return s.err
}

// endError returns the error for a stream that ended with err. io.EOF is returned unchanged. Errors other than broken
// connections become a reflector.InvalidEventError.
func (s *watchStream) endError(err error) error {
	if err == io.EOF { //nolint:errorlint // a wrapped EOF is a connection that broke, not the end
		return err
	}
	ended := err
	if _, isStatus := errors.AsType[*apierrors.StatusError](err); !isStatus {
		ended = s.endpoint.decodeError("watch", err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || s.body.err != nil && errors.Is(err, s.body.err) {
		return ended
	}
	return &reflector.InvalidEventError{Err: ended}
}

func (s *watchStream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isClosed = true
	if s.cancelReopen != nil {
		s.cancelReopen()
	}
	_ = s.body.Close()
}

func (e *endpoint) watchRequest(opts *metav1.ListOptions) (*transport.Request, error) {
	watchOpts := valueOf(opts)
	watchOpts.Watch = true
	return e.collectionRequest("watch", &watchOpts)
}

// errorRecorder is a response body. It records the error of its last read.
type errorRecorder struct {
	io.ReadCloser
	err   error
	first [firstBytes]byte
	ahead []byte // the unread bytes of first
}

// firstBytes is the number of bytes that a suspended watch reads ahead.
const firstBytes = 32

func (r *errorRecorder) Read(p []byte) (n int, err error) {
	switch {
	case len(r.ahead) > 0:
		n = copy(p, r.ahead)
		r.ahead = r.ahead[n:]
		return n, nil
	case r.err != nil:
		return 0, r.err
	}
	if n, err = r.ReadCloser.Read(p); err != nil {
		r.err = err
	}
	return n, err
}

// wait waits for input or an error.
func (r *errorRecorder) wait() {
	n, err := r.ReadCloser.Read(r.first[:])
	r.ahead = r.first[:n]
	r.err = err
}

// isStatus reports whether obj is a Status, which some aggregated API servers send without an apiVersion.
func isStatus(obj *unstructured.Object) bool {
	return obj.GetKind() == "Status" && (obj.GetAPIVersion() == "v1" || obj.GetAPIVersion() == "")
}

func decodeStatus(obj *unstructured.Object) (*metav1.Status, error) {
	status := &metav1.Status{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, status); err != nil {
		return nil, fmt.Errorf("decode the server's Status: %w", err)
	}
	return status, nil
}

// eventError returns the error of an ERROR event. Only a Status has a message.
func eventError(obj *unstructured.Object) error {
	if kind := obj.GetKind(); kind != "Status" {
		return fmt.Errorf("the object of an ERROR event is a %s, not a Status", quoted(kind))
	}
	status, err := decodeStatus(obj)
	if err != nil {
		return err
	}
	return statusError(status)
}

func statusError(status *metav1.Status) error {
	sanitize.Status(status)
	return apierrors.FromObject(status)
}
