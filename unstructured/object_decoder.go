package unstructured

import "github.com/anykind/anykind/internal/jsonread"

// objectDecoder decodes the objects of lists and watches. A value of a different type is a *notObjectError.
type objectDecoder[T any] interface {
	// item reads an item of a list. null is an object without fields. An item with neither kind nor apiVersion gets t unless t is
	// nil. hasType reports whether the returned item has a kind or apiVersion.
	item(r *jsonread.Reader, t *itemType) (item *T, hasType bool, err error)
	// withType gives an item a type.
	withType(item *T, t *itemType) *T
	// value reads any value of an event.
	value(r *jsonread.Reader) (any, error)
	// object returns the object of an event. value is the result of method value.
	object(r *jsonread.Reader, value any, deleted bool) (*T, error)
}

// fullDecoder decodes objects as [Decode] does.
type fullDecoder struct{}

func (d fullDecoder) item(r *jsonread.Reader, t *itemType) (obj *Object, hasType bool, err error) {
	v, err := r.TopValue()
	if err != nil {
		return nil, false, err
	}
	m, isObject := v.(map[string]any)
	if !isObject && v != nil {
		return nil, false, &notObjectError{v}
	}
	obj = r.NewObject(m, false)
	hasType = obj.GetKind() != "" || obj.GetAPIVersion() != ""
	if !hasType && t != nil {
		return d.withType(obj, t), true, r.Charge(t.size)
	}
	return obj, hasType, nil
}

func (fullDecoder) withType(obj *Object, t *itemType) *Object {
	obj.SetKind(t.Kind)
	obj.SetAPIVersion(t.APIVersion)
	return obj
}

func (fullDecoder) value(r *jsonread.Reader) (any, error) { return r.TopValue() }

func (fullDecoder) object(r *jsonread.Reader, value any, deleted bool) (*Object, error) {
	m, isObject := value.(map[string]any)
	if !isObject {
		return nil, &notObjectError{value}
	}
	if err := checkType(m); err != nil {
		return nil, err
	}
	return r.NewObject(m, deleted), nil
}

// lazyDecoder copies the JSON of objects.
type lazyDecoder struct{}

func (lazyDecoder) item(r *jsonread.Reader, t *itemType) (l *Lazy, hasType bool, err error) {
	item := Lazy{data: []byte("{}")}
	var v any // a value other than an object
	if c, _ := r.Peek(); c == '{' {
		item.data, item.offsets, err = r.RawObject()
	} else {
		v, err = r.Value() // with Peek's error
	}
	if err != nil {
		return nil, false, err
	}
	if v != nil {
		return nil, false, &notObjectError{v}
	}
	if t != nil && !item.hasType() {
		if err := r.Charge(t.size); err != nil {
			return nil, false, err
		}
		return item.typed(t), true, nil // a single copy
	}
	return item.clone(), item.hasType(), nil
}

func (lazyDecoder) withType(l *Lazy, t *itemType) *Lazy { return l.typed(t) }

func (lazyDecoder) value(r *jsonread.Reader) (any, error) {
	if c, _ := r.Peek(); c != '{' {
		return r.Value() // with Peek's error
	}
	return readLazy(r)
}

func (lazyDecoder) object(_ *jsonread.Reader, value any, _ bool) (*Lazy, error) {
	l, isObject := value.(*Lazy)
	if !isObject {
		return nil, &notObjectError{value}
	}
	if err := l.checkType(); err != nil {
		return nil, err
	}
	return l, nil
}

type notObjectError struct{ value any }

func (e *notObjectError) Error() string { return "is " + typeName(e.value) + ", not an object" }
