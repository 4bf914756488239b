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
	decodeMessage decodeMessageFunc
	generated     generatedCode
	filter        *shardFilter // nil for none
}

func (f protobufForm) protobuf() form { return f }

func (f protobufForm) decodeItem(e *endpoint, body []byte) (item, error) {
	kind, encoded, err := protobuf.Envelope(body)
	if err != nil {
		return item{}, notObjectError(err)
	}
	decoder := protobuf.Borrow(e.objectLimit())
	defer decoder.Release()
	return f.on(e).decode(decoder, encoded, kind)
}

// on returns f for the responses of an endpoint.
func (f protobufForm) on(e *endpoint) protobufForm {
	f.generated = f.generated.on(e)
	return f
}

// decode decodes a message of a kind.
func (f protobufForm) decode(decoder *protobuf.Decoder, encoded []byte, kind metav1.TypeMeta) (item, error) {
	if f.generated.decodes(encoded, kind) {
		obj, err := f.generated.decode(encoded)
		return item{decoded: obj}, err
	}
	message, found := protobuf.Lookup(kind.GroupVersionKind())
	if !found {
		return item{}, fmt.Errorf("%s %s: %w", printable(kind.APIVersion), printable(kind.Kind), errNoMessage)
	}
	if f.filter.isUseful() {
		lazy, err := decodeProtobufLazy(decoder, message, encoded, kind)
		if err != nil || !f.filter.matches(lazy.lazy) {
			return lazy, err
		}
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

type decodeMessageFunc func(decoder *protobuf.Decoder, message *protobuf.Message, encoded []byte, kind metav1.TypeMeta) (item, error)

// internedProtobuf returns a function that decodes full objects with equal parts. isDeleted applies to the next object.
func internedProtobuf(interner *jsonread.Interner, isDeleted *bool) decodeMessageFunc {
	return func(decoder *protobuf.Decoder, message *protobuf.Message, encoded []byte, kind metav1.TypeMeta) (item, error) {
		decoder.Intern(interner)
		fields, err := decoder.Object(message, encoded, kind)
		if err != nil {
			return item{}, err
		}
		return item{object: interner.NewObject(fields, *isDeleted)}, nil
	}
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
		f.decodeMessage = internedProtobuf(interner, new(bool))
	}
	if keepsAll {
		f.generated = generatedCode{} // the memory of all items is counted
	}
	limit, exceeded := e.objectLimit()
	r := &protobufItems{
		form: f.on(e), list: protobuf.NewListReader(body, limits.JSON(limit), exceeded), decoder: protobuf.NewDecoder(limit, exceeded),
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
	r := &protobufEvents{form: f.on(e), body: body}
	if interner != nil {
		r.form.decodeMessage = internedProtobuf(interner, &r.isDeleted)
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

// Decoder converts the objects of responses to T. Its functions return an error or an object that shares no memory with their
// argument. They may be called concurrently.
type Decoder[T any] struct {
	// Lazy converts an object.
	Lazy func(obj *unstructured.Lazy) (*T, error)
	// Message decodes the Protobuf message of an object of the handle's kind, or of its metadata with [Handle.Metadata], by the
	// generated code of a Go type. The message is valid during the call. Fields of a newer server may be dropped. Message is
	// called for messages of up to 256 KiB that are not held together as a page: Lazy converts other objects. nil means Lazy
	// alone.
	Message func(message []byte) (*T, error)
}

// Decode returns a handle on the same resource for objects of type T, like [As], with a decoder of its own. It is for types that are
// known only at run time, such as the types of a runtime.Scheme. With transport.Options.Protobuf, Get, List, Watch and Follow of
// built-in kinds then call the generated code of the types.
func Decode[T any, P interface {
	*T
	metav1.Object
}, From any](h *Handle[From], decoder Decoder[T]) *Handle[T] {
	typed := As[T](h)
	codec := decoderCodec[T]{decoder: decoder}
	if decoder.Message != nil {
		codec.generated.decode = func(message []byte) (objectMeta, error) {
			obj, err := decoder.Message(message)
			if err != nil {
				return nil, err
			}
			return P(obj), nil
		}
	}
	typed.codec = codec
	typed.hasGenerated = decoder.Message != nil
	return typed
}

// decoderCodec is the codec of a Decoder.
type decoderCodec[T any] struct {
	structCodec[T]

	decoder   Decoder[T]
	generated generatedCode
}

func (c decoderCodec[T]) form() form { return decodedObjects{generated: c.generated} }

func (c decoderCodec[T]) decode(e *endpoint, item item) (*T, error) {
	if same, ok := any(item.decoded).(*T); ok {
		return same, nil
	}
	lazy := item.lazy
	if item.object != nil {
		var err error
		if lazy, err = unstructured.As[unstructured.Lazy](e.represent(item.object)); err != nil {
			return nil, err
		}
	} else {
		lazy = e.representLazy(lazy)
	}
	return c.decoder.Lazy(lazy)
}

// decodedObjects is the form of objects for a Decoder.
type decodedObjects struct {
	lazyObjects

	generated generatedCode
}

func (f decodedObjects) protobuf() form {
	return protobufForm{decodeMessage: decodeProtobufLazy, generated: f.generated}
}

const (
	// maxGrowth bounds the bytes of memory for a byte of a message: an empty struct in a list takes two bytes.
	maxGrowth = 1 << 10
	// maxGenerated bounds the message decoded by generated code, which has no limits, in bytes.
	maxGenerated = 256 << 10
)

// generatedCode decodes messages without the recorded table.
type generatedCode struct {
	decode  func(message []byte) (objectMeta, error) // nil for none
	kind    metav1.TypeMeta                          // of its messages
	longest int64
}

// on returns g for the responses of an endpoint.
func (g generatedCode) on(e *endpoint) generatedCode {
	g.kind.APIVersion, g.kind.Kind = e.responseKind().ToAPIVersionAndKind()
	g.longest = min(maxGenerated, limits.Or(e.limits().Object, limits.DefaultObject)/maxGrowth)
	return g
}

// decodes reports whether g decodes a message of a kind.
func (g *generatedCode) decodes(message []byte, kind metav1.TypeMeta) bool {
	return g.decode != nil && int64(len(message)) <= g.longest && kind == g.kind
}
