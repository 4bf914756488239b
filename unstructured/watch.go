package unstructured

import (
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/jsonread"
)

// WatchEvent is an event of a watch. T is [Object] or [Lazy]. Object is never nil. ADDED and MODIFIED have the current object.
// DELETED has the last state of the object. BOOKMARK has an object without contents: its resourceVersion is for resuming. ERROR has a
// Status.
type WatchEvent[T any] struct {
	Type   watch.EventType
	Object *T
}

// WatchDecoder reads the events of a watch from a response's body. It never waits for input behind an event: an event is returned
// as soon as its closing brace is read. A WatchDecoder is not safe for concurrent use.
type WatchDecoder struct {
	r     *jsonread.Reader
	limit int64 // of an event, in bytes of memory
	err   error
}

// A watch's buffer is small, because programs hold many watches. It grows if events arrive faster than they are read: HTTP/2
// responds to each read of 4 KiB or more with a packet. It shrinks after a bookmark.
const (
	watchChunk     = 4 << 10
	maxWatchBuffer = 32 << 10
)

// NewWatchDecoder returns a decoder of the events in r. The caller closes r. An event beyond the default of [Limits].Object is a
// *[LimitError].
func NewWatchDecoder(r io.Reader) *WatchDecoder { return Limits{}.NewWatchDecoder(r) }

// NewWatchDecoder is [NewWatchDecoder] with the limit l.Object for each event.
func (l Limits) NewWatchDecoder(r io.Reader) *WatchDecoder {
	d := &WatchDecoder{r: jsonread.NewReader(r, watchChunk), limit: l.object()}
	d.r.Limit(d.limit, l.objectError())
	d.r.GrowTo(maxWatchBuffer)
	return d
}

// Next waits for the next event. At the end of the stream it returns io.EOF itself, or io.ErrUnexpectedEOF (errors.Is) within an
// event. A failing reader returns its own error (errors.Is). Input other than events is an error. An ERROR event is no error
// here. After an error Next returns the same error again.
func (d *WatchDecoder) Next() (WatchEvent[Object], error) { return nextEvent(d, fullDecoder{}) }

// NextLazy is Next without decoding the event's object. It returns the same errors. Calls of Next and NextLazy may
// alternate.
func (d *WatchDecoder) NextLazy() (WatchEvent[Lazy], error) { return nextEvent(d, lazyDecoder{}) }

// Buffered returns the number of bytes read behind the last event, without white space before the next event.
func (d *WatchDecoder) Buffered() int { return d.r.Buffered() }

func nextEvent[T any](d *WatchDecoder, decoder objectDecoder[T]) (WatchEvent[T], error) {
	var event WatchEvent[T]
	if d.err == nil {
		event, d.err = readEvent(d, decoder)
	}
	return event, d.err
}

func readEvent[T any](d *WatchDecoder, decoder objectDecoder[T]) (WatchEvent[T], error) {
	eventType, value, err := readEventMembers(d, decoder)
	if err != nil {
		return WatchEvent[T]{}, err
	}
	name, isString := eventType.(string)
	if !isString {
		return WatchEvent[T]{}, fmt.Errorf("watch event's type is %s, not a string", typeName(eventType))
	}
	switch t := watch.EventType(name); t {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error:
		obj, err := decoder.object(d.r, value, t == watch.Deleted)
		if t == watch.Bookmark { // the end of the initial events, or a minute without many events
			d.r.ShrinkIdle(watchChunk)
		}
		if err == nil {
			return WatchEvent[T]{Type: t, Object: obj}, nil
		}
		if _, notObject := errors.AsType[*notObjectError](err); notObject {
			err = fmt.Errorf("%s watch event's object %w", t, err)
		}
		return WatchEvent[T]{}, err
	default:
		return WatchEvent[T]{}, fmt.Errorf("unknown watch event type %.40q", name)
	}
}

func readEventMembers[T any](d *WatchDecoder, decoder objectDecoder[T]) (eventType, object any, err error) {
	r := d.r
	r.Shrink(watchChunk)
	c, err := r.PeekStart()
	switch {
	case err == io.EOF:
		return nil, nil, err
	case err != nil:
		return nil, nil, fmt.Errorf("reading watch events after byte %d: %w", r.Offset(), err)
	case c != '{':
		return nil, nil, r.SyntaxError(c, "where a watch event should begin")
	}
	r.BeginPart(d.limit)
	name, more, err := r.OpenObject()
	for more {
		switch name {
		case "type":
			eventType, err = r.Value()
		case "object":
			object, err = decoder.value(r)
		default:
			_, err = r.Value()
		}
		if err != nil {
			return nil, nil, err
		}
		name, more, err = r.NextMember()
	}
	if err == nil {
		_, err = r.EndPart()
	}
	return eventType, object, err
}
