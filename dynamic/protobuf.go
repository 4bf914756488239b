package dynamic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/limits"
	"github.com/anykind/anykind/internal/protobuf"
	"github.com/anykind/anykind/unstructured"
)

// protobufForm is the form of items in protobuf responses.
type protobufForm struct {
	decodeMessage func(decoder *protobuf.Decoder, message *protobuf.Message, encoded []byte, kind metav1.TypeMeta) (item, error)
}

func (f protobufForm) protobuf() form { return f }

func (f protobufForm) decodeItem(e *endpoint, body []byte) (item, error) {
	kind, encoded, err := protobuf.Envelope(body)
	if err != nil {
		return item{}, notObjectError(err)
	}
	decoder := protobuf.Borrow(e.objectLimit())
	defer decoder.Release()
	return f.decode(decoder, encoded, kind)
}

// decode decodes a message of a kind.
func (f protobufForm) decode(decoder *protobuf.Decoder, encoded []byte, kind metav1.TypeMeta) (item, error) {
	message, found := protobuf.Lookup(kind.GroupVersionKind())
	if !found {
		return item{}, fmt.Errorf("%s %s: %w", printable(kind.APIVersion), printable(kind.Kind), errNoMessage)
	}
	return f.decodeMessage(decoder, message, encoded, kind)
}

var errNoMessage = errors.New("the protobuf message of this kind is unknown")

// decodeProtobufObject decodes a message to a full object.
func decodeProtobufObject(decoder *protobuf.Decoder, message *protobuf.Message, encoded []byte, kind metav1.TypeMeta) (item, error) {
	fields, err := decoder.Object(message, encoded, kind)
	if err != nil {
		return item{}, err
	}
	return item{object: &unstructured.Object{Object: fields}}, nil
}

// internedProtobuf returns the form of full objects with equal parts. isDeleted applies to the next object.
func internedProtobuf(interner *jsonread.Interner, isDeleted *bool) protobufForm {
	return protobufForm{func(decoder *protobuf.Decoder, message *protobuf.Message, encoded []byte, kind metav1.TypeMeta) (item, error) {
		decoder.Intern(interner)
		fields, err := decoder.Object(message, encoded, kind)
		if err != nil {
			return item{}, err
		}
		return item{object: interner.NewObject(fields, *isDeleted)}, nil
	}}
}

// decodeProtobufLazy decodes a message to a lazy object.
func decodeProtobufLazy(decoder *protobuf.Decoder, message *protobuf.Message, encoded []byte, kind metav1.TypeMeta) (item, error) {
	lazy, err := protobuf.NewLazy(decoder, protobuf.Kind{Message: message, TypeMeta: kind}, encoded)
	if err != nil {
		return item{}, err
	}
	return item{lazy: lazy.(*unstructured.Lazy)}, nil //nolint:forcetypeassert // by its contract
}

func (f protobufForm) readItems(e *endpoint, body io.Reader, interner *jsonread.Interner, keepsAll bool) itemReader {
	if interner != nil {
		f = internedProtobuf(interner, new(bool))
	}
	limit, exceeded := e.objectLimit()
	r := &protobufItems{
		form: f, list: protobuf.NewListReader(body, limits.JSON(limit), exceeded), decoder: protobuf.NewDecoder(limit, exceeded),
		pageLimit: math.MaxInt64, left: math.MaxInt64,
	}
	if keepsAll {
		r.pageLimit = limits.Or(e.limits().Page, limits.DefaultPage)
		r.left = r.pageLimit
	}
	return r
}

// protobufItems reads the items of a list. Items have the kind of the list without its suffix List.
type protobufItems struct {
	form            protobufForm
	list            *protobuf.ListReader
	decoder         *protobuf.Decoder
	kind            metav1.TypeMeta // of the items
	pageLimit, left int64           // for the memory of all items
}

func (r *protobufItems) next() (item, error) {
	encoded, err := r.list.Next()
	if err != nil {
		return item{}, err
	}
	if r.kind.Kind == "" {
		r.kind = r.typeMeta()
		r.kind.Kind = strings.TrimSuffix(r.kind.Kind, "List")
	}
	decoded, err := r.form.decode(r.decoder, encoded, r.kind)
	if err != nil {
		return item{}, err
	}
	if r.left -= r.decoder.Memory(); r.left < 0 {
		return item{}, &unstructured.LimitError{Limit: r.pageLimit, IsPage: true}
	}
	return decoded, nil
}

func (r *protobufItems) meta() metav1.ListMeta { return r.list.Meta() }

func (r *protobufItems) typeMeta() metav1.TypeMeta {
	kind, _ := r.list.Header() // next returns the error
	return kind
}

func (f protobufForm) readEvents(e *endpoint, body io.Reader, interner *jsonread.Interner) eventReader {
	r := &protobufEvents{form: f, body: body}
	if interner != nil {
		r.form = internedProtobuf(interner, &r.isDeleted)
	}
	r.limit, r.exceeded = e.objectLimit()
	r.decoder = protobuf.NewDecoder(r.limit, r.exceeded)
	return r
}

// protobufEvents reads the events of a watch.
type protobufEvents struct {
	form      protobufForm
	body      io.Reader
	decoder   *protobuf.Decoder
	frame     bytes.Buffer
	limit     int64 // of an event's memory
	exceeded  error
	isDeleted bool // the last event is a deletion
}

func (r *protobufEvents) next() (itemEvent, error) {
	frame, err := protobuf.ReadFrame(r.body, &r.frame, limits.JSON(r.limit), r.exceeded)
	if err != nil {
		return itemEvent{}, err
	}
	name, object, err := protobuf.Event(frame)
	if err != nil {
		return itemEvent{}, err
	}
	kind := partialType
	if protobuf.HasEnvelope(object) {
		if kind, object, err = protobuf.Envelope(object); err != nil {
			return itemEvent{}, err
		}
	}
	event := itemEvent{eventType: watch.EventType(name)}
	r.isDeleted = event.eventType == watch.Deleted
	switch event.eventType {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
		event.item, err = r.form.decode(r.decoder, object, kind)
	case watch.Error:
		status := &metav1.Status{}
		if err = status.Unmarshal(object); err == nil {
			err = statusError(status)
		}
	default:
		err = fmt.Errorf("unknown watch event type %.40q", name)
	}
	return event, err
}

// objectLimit returns the limit of an object's memory and the error of an object beyond it.
func (e *endpoint) objectLimit() (limit int64, exceeded error) {
	limit = limits.Or(e.limits().Object, limits.DefaultObject)
	return limit, &unstructured.LimitError{Limit: limit}
}
