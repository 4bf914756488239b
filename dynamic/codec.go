package dynamic

import (
	"fmt"
	"io"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/unstructured"
)

// codec converts between objects of type T, the items read by an endpoint, and the objects written by it.
type codec[T any] interface {
	// form is the form of the items to decode.
	form() form
	// decode converts an item of a response of e. A whole object is accepted in addition to the codec's form.
	decode(e *endpoint, item item) (*T, error)
	encode(obj *T) (*unstructured.Object, error)
	// change calls change with obj as a T, and applies its changes to obj.
	change(obj *unstructured.Object, change func(*T) error) error
}

// codecOf returns the codec of T.
func codecOf[T any]() codec[T] {
	if codec, ok := any(objectCodec{}).(codec[T]); ok {
		return codec
	}
	// A program without a use of TableRow does not contain the code for tables.
	if row, ok := any((*T)(nil)).(interface{ codec() codec[T] }); ok {
		return row.codec()
	}
	return structCodec[T]{}
}

// objectCodec is the codec of unstructured.Object. It converts nothing.
type objectCodec struct{}

func (objectCodec) form() form { return wholeObjects{} }

func (objectCodec) decode(e *endpoint, item item) (*unstructured.Object, error) {
	return e.represent(item.object), nil
}

func (objectCodec) encode(obj *unstructured.Object) (*unstructured.Object, error) { return obj, nil }

func (objectCodec) change(obj *unstructured.Object, change func(*unstructured.Object) error) error {
	return change(obj)
}

// structCodec is the codec of structs, which it converts from lazy objects, and of unstructured.Lazy.
type structCodec[T any] struct{}

func (structCodec[T]) form() form { return lazyObjects{} }

func (structCodec[T]) decode(e *endpoint, item item) (typed *T, err error) {
	if item.object != nil {
		if typed, err = unstructured.As[T](e.represent(item.object)); err != nil {
			return nil, e.conversionError(item, reflect.TypeFor[T](), err)
		}
		return typed, nil
	}
	lazy := e.representLazy(item.lazy)
	if same, ok := any(lazy).(*T); ok {
		return same, nil
	}
	typed = new(T)
	if err := e.limits().Into(lazy, typed); err != nil {
		return nil, e.conversionError(item, reflect.TypeFor[T](), err)
	}
	return typed, nil
}

func (e *endpoint) conversionError(item item, to reflect.Type, err error) error {
	meta := item.meta()
	name := meta.GetName()
	if namespace := meta.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return fmt.Errorf("decode %s %s as %s: %w", e, quoted(name), to, err)
}

func (structCodec[T]) encode(obj *T) (*unstructured.Object, error) { return unstructured.From(obj) }

func (structCodec[T]) change(obj *unstructured.Object, change func(*T) error) error {
	isNew := obj.GetResourceVersion() == ""
	typed, err := unstructured.As[T](obj)
	if err != nil {
		return err
	}
	before, err := unstructured.From(typed) // the fields that T has
	if err != nil {
		return err
	}
	if err := change(typed); err != nil {
		return err
	}
	after, err := unstructured.From(typed)
	if err != nil {
		return err
	}
	if isNew {
		before.Object = nil
	}
	mergeChanges(obj.Object, before.Object, after.Object)
	return nil
}

// form decodes the responses of an endpoint into items. A program contains only the forms of its handles.
type form interface {
	// protobuf returns the form for the same items in a protobuf response.
	protobuf() form
	// decodeItem decodes a body with one object. It does not retain body.
	decodeItem(e *endpoint, body []byte) (item, error)
	// readItems reads the items of a list. keepsAll means that the caller keeps them. interner may be nil.
	readItems(e *endpoint, body io.Reader, interner *jsonread.Interner, keepsAll bool) itemReader
	// readEvents reads the events of a watch. interner may be nil.
	readEvents(e *endpoint, body io.Reader, interner *jsonread.Interner) eventReader
}

// itemReader reads the items of a list.
type itemReader interface {
	// next returns io.EOF itself after the last item.
	next() (item, error)
	// meta returns the list's metadata as read so far.
	meta() metav1.ListMeta
	typeMeta() metav1.TypeMeta
}

// eventReader reads the events of a watch.
type eventReader interface {
	// next returns io.EOF itself at the end of the watch, and the Status of an ERROR event as an error.
	next() (itemEvent, error)
}

// itemEvent is an event of a watch.
type itemEvent struct {
	eventType watch.EventType
	item      item
}

// item is one object of a response. Exactly one field is set.
type item struct {
	object  *unstructured.Object
	lazy    *unstructured.Lazy
	row     *TableRow
	decoded objectMeta // by a Decoder
}

// objectMeta is the part of an object's metadata that identifies its version.
type objectMeta interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
	GetAnnotations() map[string]string
}

// meta returns the metadata of an item. A row without an object has a resourceVersion only.
func (i item) meta() objectMeta {
	switch {
	case i.object != nil:
		return i.object
	case i.lazy != nil:
		return i.lazy
	case i.row != nil && i.row.Object != nil:
		return i.row.Object
	case i.decoded != nil:
		return i.decoded
	}
	obj := &unstructured.Object{}
	if i.row != nil && i.row.ResourceVersion != "" {
		obj.SetResourceVersion(i.row.ResourceVersion)
	}
	return obj
}

// failure returns the error of the Status of a failure in place of an object. Some servers respond with 200, and as in client-go
// this is an error.
func (i item) failure() (err error) {
	obj := i.object
	if i.lazy != nil && i.lazy.GetKind() == "Status" {
		if obj, err = i.lazy.Object(); err != nil {
			return err
		}
	}
	if obj == nil || !isStatus(obj) {
		return nil
	}
	_, err = successStatus(obj)
	return err
}

// wholeObjects is the form of decoded objects.
type wholeObjects struct{}

func (wholeObjects) protobuf() form { return protobufForm{decodeMessage: decodeProtobufObject} }

func (wholeObjects) decodeItem(e *endpoint, body []byte) (item, error) {
	obj, err := e.limits().Decode(body)
	if err != nil {
		return item{}, notObjectError(err)
	}
	return item{object: obj}, nil
}

func (wholeObjects) readItems(e *endpoint, body io.Reader, interner *jsonread.Interner, isPage bool) itemReader {
	return objectReader{e.listDecoder(interner.Source(body), isPage)}
}

func (wholeObjects) readEvents(e *endpoint, body io.Reader, interner *jsonread.Interner) eventReader {
	return objectEvents{e.limits().NewWatchDecoder(interner.Source(body))}
}

type objectReader struct{ list *unstructured.ListDecoder }

func (r objectReader) next() (item, error) {
	obj, err := r.list.Next()
	return item{object: obj}, err
}

func (r objectReader) meta() metav1.ListMeta { return r.list.Meta() }

func (r objectReader) typeMeta() metav1.TypeMeta { return r.list.TypeMeta() }

type objectEvents struct{ events *unstructured.WatchDecoder }

func (r objectEvents) hasBuffered() bool { return r.events.Buffered() > 0 }

func (r objectEvents) next() (itemEvent, error) {
	event, err := r.events.Next()
	if err == nil && event.Type == watch.Error {
		err = eventError(event.Object)
	}
	return itemEvent{event.Type, item{object: event.Object}}, err
}

// lazyObjects is the form of lazy objects. It does not intern.
type lazyObjects struct{}

func (lazyObjects) protobuf() form { return protobufForm{decodeMessage: decodeProtobufLazy} }

func (lazyObjects) decodeItem(e *endpoint, body []byte) (item, error) {
	obj, err := e.limits().DecodeLazy(body)
	if err != nil {
		return item{}, notObjectError(err)
	}
	return item{lazy: obj}, nil
}

func (lazyObjects) readItems(e *endpoint, body io.Reader, _ *jsonread.Interner, isPage bool) itemReader {
	return lazyReader{objectReader{e.listDecoder(body, isPage)}}
}

func (lazyObjects) readEvents(e *endpoint, body io.Reader, _ *jsonread.Interner) eventReader {
	return lazyEvents{e.limits().NewWatchDecoder(body)}
}

type lazyReader struct{ objectReader }

func (r lazyReader) next() (item, error) {
	obj, err := r.list.NextLazy()
	return item{lazy: obj}, err
}

type lazyEvents struct{ events *unstructured.WatchDecoder }

func (r lazyEvents) hasBuffered() bool { return r.events.Buffered() > 0 }

func (r lazyEvents) next() (itemEvent, error) {
	event, err := r.events.NextLazy()
	if err == nil && event.Type == watch.Error {
		var obj *unstructured.Object
		if obj, err = event.Object.Object(); err == nil {
			err = eventError(obj)
		}
	}
	return itemEvent{event.Type, item{lazy: event.Object}}, err
}

func (e *endpoint) listDecoder(body io.Reader, isPage bool) *unstructured.ListDecoder {
	if isPage {
		return e.limits().NewPageDecoder(body)
	}
	return e.limits().NewListDecoder(body)
}

func notObjectError(err error) error {
	return fmt.Errorf("the response is not a Kubernetes object: %w", err)
}
