package reflector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport"
)

// JSONWatch opens watches for sources in packages below dynamic.
type JSONWatch[T any] struct {
	Conn    *transport.Conn
	Request transport.Request // its query selects the objects
	// MaxEvent is the maximum number of bytes of an event.
	MaxEvent int64
	// Decode sets the fields of event but Type. It must not retain the JSON.
	Decode func(object []byte, event *Event[T]) error
}

// Open implements Source.Watch.
func (w JSONWatch[T]) Open(ctx context.Context, opts metav1.ListOptions) (Stream[T], error) {
	request := w.Request
	request.Query = maps.Clone(w.Request.Query)
	if request.Query == nil {
		request.Query = url.Values{}
	}
	request.Query.Set("watch", "true")
	request.Query.Set("resourceVersion", opts.ResourceVersion)
	request.Query.Set("allowWatchBookmarks", strconv.FormatBool(opts.AllowWatchBookmarks))
	request.Query.Set("timeoutSeconds", strconv.FormatInt(*opts.TimeoutSeconds, 10))
	response, err := w.Conn.Do(ctx, &request) //nolint:bodyclose // by Close
	if err != nil {
		return nil, err
	}
	body := &io.LimitedReader{R: response.Body}
	return &jsonStream[T]{JSONWatch: w, body: response.Body, limited: body, events: json.NewDecoder(body)}, nil
}

type jsonStream[T any] struct {
	JSONWatch[T]

	body    io.Closer
	limited *io.LimitedReader
	events  *json.Decoder
}

func (s *jsonStream[T]) Close() { _ = s.body.Close() }

func (s *jsonStream[T]) Next(event *Event[T]) (err error) {
	var received struct {
		Type   watch.EventType
		Object json.RawMessage
	}
	s.limited.N = s.MaxEvent
	if err := s.events.Decode(&received); err != nil {
		return s.readError(err)
	}
	if received.Type == watch.Error {
		err = statusError(received.Object)
	} else {
		err = s.Decode(received.Object, event)
	}
	if err != nil {
		return &InvalidEventError{err}
	}
	event.Type = received.Type
	return nil
}

// readError distinguishes the end of the stream, a broken connection and invalid content.
func (s *jsonStream[T]) readError(err error) error {
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case s.limited.N <= 0:
		return &InvalidEventError{fmt.Errorf("an event is larger than %d MiB", s.MaxEvent>>20)}
	case errors.As(err, &syntax) || errors.As(err, &mismatch):
		return &InvalidEventError{err}
	default:
		return err
	}
}

func statusError(object []byte) error {
	status := &apierrors.StatusError{}
	if err := json.Unmarshal(object, &status.ErrStatus); err != nil {
		return fmt.Errorf("decode the server's Status: %w", err)
	}
	sanitize.Status(&status.ErrStatus)
	return status
}
