package unstructured

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/watch"
)

// Event is one event of a watch, whose T is [Object] or [Lazy]. Object is never nil: the object as it is now (ADDED,
// MODIFIED) or was at last (DELETED), one that has nothing but a resourceVersion to go on from (BOOKMARK), or the
// Status that says what went wrong (ERROR).
type Event[T any] struct {
	Type   watch.EventType
	Object *T
}

// WatchDecoder reads the events of a watch off its response's body. It reads ahead no further than what its reader
// has ready: an event is there as soon as its closing brace is. One goroutine at a time.
type WatchDecoder struct {
	r   *reader
	err error
}

// A watch's buffer is small because programs hold many watches, and grows where events come faster than they are read:
// HTTP/2 answers each read of 4 KiB or more with a packet.
const (
	watchChunk = 4 << 10
	watchMost  = 32 << 10
)

// NewWatchDecoder reads events from r, which stays the caller's to close.
func NewWatchDecoder(r io.Reader) *WatchDecoder {
	d := &WatchDecoder{r: newReader(r, watchChunk)}
	d.r.most = watchMost
	return d
}

// Next waits for the next event. It fails with io.EOF itself when the stream ends between events, with
// io.ErrUnexpectedEOF (errors.Is) when it ends within one, with the reader's own error (errors.Is) when reading
// fails, and when what it reads is not an event. After an error it gives the same error for ever. An ERROR event is
// no error here.
func (d *WatchDecoder) Next() (Event[Object], error) {
	typ, object, err := d.readFrame(d.r.whole)
	if err != nil {
		return Event[Object]{}, err
	}
	m, isObject := object.(map[string]any)
	if !isObject {
		return Event[Object]{}, d.notObject(typ, object)
	}
	if d.err = checkType(m); d.err != nil {
		return Event[Object]{}, d.err
	}
	return Event[Object]{Type: typ, Object: d.r.parts.object(m, typ == watch.Deleted)}, nil
}

// NextLazy is Next without decoding the event's object. It fails where Next does, with the same errors. Calls of Next
// and NextLazy may alternate.
func (d *WatchDecoder) NextLazy() (Event[Lazy], error) {
	typ, object, err := d.readFrame(d.r.lazyValue)
	if err != nil {
		return Event[Lazy]{}, err
	}
	l, isObject := object.(*Lazy)
	if !isObject {
		return Event[Lazy]{}, d.notObject(typ, object)
	}
	if d.err = l.checkType(); d.err != nil {
		return Event[Lazy]{}, d.err
	}
	return Event[Lazy]{Type: typ, Object: l}, nil
}

// readFrame reads one event's type and, by readObject, its object.
func (d *WatchDecoder) readFrame(readObject func() (any, error)) (watch.EventType, any, error) {
	if d.err != nil {
		return "", nil, d.err
	}
	typ, object, err := d.readMembers(readObject)
	if err != nil {
		d.err = err
		return "", nil, err
	}
	name, isString := typ.(string)
	switch t := watch.EventType(name); t {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error:
		return t, object, nil
	default:
		d.err = fmt.Errorf("unknown watch event type %.40q", name)
		if !isString {
			d.err = fmt.Errorf("watch event's type is %s, not a string", typeName(typ))
		}
		return "", nil, d.err
	}
}

func (d *WatchDecoder) readMembers(readObject func() (any, error)) (typ, object any, err error) {
	d.r.shrink(watchChunk)
	c, err := d.r.peek()
	switch {
	case err == io.EOF:
		return nil, nil, err
	case err != nil:
		return nil, nil, fmt.Errorf("reading watch events after byte %d: %w", d.r.offset(), err)
	case c != '{':
		return nil, nil, d.r.syntax(c, "where a watch event should begin")
	}
	name, more, err := d.r.openObject()
	for more {
		switch name {
		case "type":
			typ, err = d.r.value()
		case "object":
			object, err = readObject()
		default:
			_, err = d.r.value()
		}
		if err != nil {
			return nil, nil, err
		}
		name, more, err = d.r.nextMember()
	}
	return typ, object, err
}

// notObject is the error for an event of a type that has something else for an object.
func (d *WatchDecoder) notObject(typ watch.EventType, object any) error {
	d.err = fmt.Errorf("%s watch event's object is %s, not an object", typ, typeName(object))
	return d.err
}

// Share has the objects that Next reads share equal parts, with each other and with what else is read with the same
// parts; nil for no more.
func (d *WatchDecoder) Share(parts *Parts) { d.r.parts = parts }
