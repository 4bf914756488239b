package unstructured

import (
	stdencoding "encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/anykind/anykind/internal/jsonread"
)

// reflected writes a Go value of a type never returned by Decode. It walks slices and string-keyed maps, so that an error has the
// path of the value itself; encoding/json writes the rest.
func (e *encoder) reflected(v any) error {
	if isMarshaler(v) {
		return e.marshaled(v)
	}
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return &encodeError{cause: fmt.Errorf("cannot encode %T", v)}
	case reflect.Bool:
		e.WriteBool(rv.Bool())
	case reflect.String:
		e.WriteString(validText(rv.String()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.WriteInt64(rv.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		e.WriteUint64(rv.Uint())
	case reflect.Float64:
		return e.float(rv.Float())
	case reflect.Pointer:
		if rv.IsNil() {
			e.WriteNil()
			return nil
		}
		return e.pointee(rv)
	case reflect.Slice, reflect.Array:
		return e.slice(rv)
	case reflect.Map:
		return e.typedMap(rv)
	default:
		return e.marshaled(v)
	}
	return nil
}

func isMarshaler(v any) bool {
	_, isJSON := v.(json.Marshaler)
	_, isText := v.(stdencoding.TextMarshaler)
	return isJSON || isText
}

// pointee writes the target of a pointer. It counts as a level, to stop at a pointer to itself.
func (e *encoder) pointee(rv reflect.Value) error {
	if err := e.enter(); err != nil {
		return err
	}
	var err error
	switch target := rv.Elem(); target.Kind() {
	case reflect.Struct:
		err = e.marshaled(rv.Interface()) // fields may be json.Marshalers only by their address
	case reflect.Array:
		err = e.slice(target)
	default:
		err = e.value(target.Interface())
	}
	e.depth--
	return err
}

func (e *encoder) slice(rv reflect.Value) error {
	if rv.Kind() == reflect.Slice && rv.IsNil() {
		e.WriteNil()
		return nil
	}
	if rv.Kind() == reflect.Slice && rv.Type().Elem().Kind() == reflect.Uint8 {
		return e.marshaled(rv.Interface()) // base64
	}
	list := make([]any, rv.Len())
	for i := range list {
		list[i] = addressed(rv.Index(i))
	}
	return e.array(list)
}

// addressed returns an element, or its address if the element or its fields may implement json.Marshaler on a pointer.
func addressed(element reflect.Value) any {
	if !element.CanAddr() || element.Kind() == reflect.Pointer || element.Kind() == reflect.Interface {
		return element.Interface()
	}
	p := element.Addr().Interface()
	if element.Kind() == reflect.Struct || element.Kind() == reflect.Array || isMarshaler(p) {
		return p
	}
	return element.Interface()
}

func (e *encoder) typedMap(rv reflect.Value) error {
	key := rv.Type().Key()
	if rv.IsNil() {
		e.WriteNil()
		return nil
	}
	if key.Kind() != reflect.String || key.Implements(reflect.TypeFor[stdencoding.TextMarshaler]()) {
		return e.marshaled(rv.Interface())
	}
	m := make(map[string]any, rv.Len())
	for entries := rv.MapRange(); entries.Next(); {
		m[entries.Key().String()] = entries.Value().Interface()
	}
	return e.object(m)
}

// marshaled writes v with encoding/json, decodes the result and writes the decoded value.
func (e *encoder) marshaled(v any) error {
	data, err := json.Marshal(v)
	var plain any
	if err == nil {
		plain, err = decodeValue(data)
	}
	if err != nil {
		return &encodeError{cause: fmt.Errorf("cannot encode %T: %w", v, err)}
	}
	return e.value(plain)
}

func decodeValue(data []byte) (any, error) {
	r := jsonread.Borrow(append(data, ' ')) // a number needs a following byte to end
	defer r.Release()
	return r.Value()
}

// validText replaces every byte that is not UTF-8 by U+FFFD; json-iterator would pass it through.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

type encodeError struct {
	path  []string // innermost step first
	cause error
}

func prependStep(step string, err error) error {
	if e, ok := err.(*encodeError); ok {
		e.path = append(e.path, step)
	}
	return err
}

// maxPathEnd is the number of steps in an error's text at each end: the path of a map containing itself has thousands.
const maxPathEnd = 16

func (e *encodeError) Error() string {
	var b strings.Builder
	for i, step := range slices.Backward(e.path) {
		switch {
		case i < maxPathEnd || i >= len(e.path)-maxPathEnd:
			b.WriteString(step)
		case i == maxPathEnd:
			b.WriteString("…")
		}
	}
	return b.String() + ": " + e.cause.Error()
}

func (e *encodeError) Unwrap() error { return e.cause }
