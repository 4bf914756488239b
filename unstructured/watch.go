package unstructured

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/watch"
)

// Event is one event of a watch. Object is never nil: the object as it is now (ADDED, MODIFIED) or was at last
// (DELETED), one that has nothing but a resourceVersion to go on from (BOOKMARK), or the Status that says what went
// wrong (ERROR).
type Event struct {
	Type   watch.EventType
	Object *Object
}

// WatchDecoder reads the events of a watch off its response's body. It reads ahead no further than what its reader
// has ready: an event is there as soon as its closing brace is. One goroutine at a time.
type WatchDecoder struct {
	r   *reader
	err error
}

// watchChunk is small because programs hold many watches; it grows with the longest string only.
const watchChunk = 4 << 10

// NewWatchDecoder reads events from r, which stays the caller's to close.
func NewWatchDecoder(r io.Reader) *WatchDecoder {
	return &WatchDecoder{r: newReader(r, watchChunk)}
}

// Next waits for the next event. It fails with io.EOF itself when the stream ends between events, with
// io.ErrUnexpectedEOF (errors.Is) when it ends within one, with the reader's own error (errors.Is) when reading
// fails, and when what it reads is not an event. After an error it gives the same error for ever. An ERROR event is
// no error here.
func (d *WatchDecoder) Next() (Event, error) {
	if d.err != nil {
		return Event{}, d.err
	}
	event, err := d.read()
	if err != nil {
		d.err = err
		return Event{}, err
	}
	return event, nil
}

func (d *WatchDecoder) read() (Event, error) {
	c, err := d.r.peek()
	switch {
	case err == io.EOF:
		return Event{}, err
	case err != nil:
		return Event{}, fmt.Errorf("reading watch events after byte %d: %w", d.r.offset(), err)
	case c != '{':
		return Event{}, d.r.syntax(c, "where a watch event should begin")
	}
	var typ, object any
	name, more, err := d.r.openObject()
	for more {
		var v any
		if v, err = d.r.value(); err != nil {
			return Event{}, err
		}
		switch name {
		case "type":
			typ = v
		case "object":
			object = v
		}
		name, more, err = d.r.nextMember()
	}
	if err != nil {
		return Event{}, err
	}
	return newEvent(typ, object)
}

func newEvent(typ, object any) (Event, error) {
	name, isString := typ.(string)
	if !isString {
		return Event{}, fmt.Errorf("watch event's type is %s, not a string", typeName(typ))
	}
	switch t := watch.EventType(name); t {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error:
		m, isObject := object.(map[string]any)
		if !isObject {
			return Event{}, fmt.Errorf("%s watch event's object is %s, not an object", name, typeName(object))
		}
		if err := checkType(m); err != nil {
			return Event{}, err
		}
		return Event{Type: t, Object: &Object{Object: m}}, nil
	default:
		return Event{}, fmt.Errorf("unknown watch event type %.40q", name)
	}
}
