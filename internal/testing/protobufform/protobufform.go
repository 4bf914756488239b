// Package protobufform decodes objects by package internal/protobuf for tests of further modules: they compare the results with the results
// of generated code.
package protobufform

import (
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/protobuf"
)

// Forms are the results of decoding an encoded object.
type Forms struct {
	Object map[string]any
	JSON   []byte
}

var errExceeded = errors.New("the memory limit is exceeded")

// Decoder decodes objects of a kind.
type Decoder struct {
	message  *protobuf.Message
	decoder  *protobuf.Decoder
	interned *protobuf.Decoder
	interner *jsonread.Interner
	t        metav1.TypeMeta
}

// New returns a decoder of objects of a kind.
func New(gvk schema.GroupVersionKind) (*Decoder, error) {
	message, found := protobuf.Lookup(gvk)
	if !found {
		return nil, fmt.Errorf("the table has no message of %s", gvk)
	}
	d := &Decoder{
		message: message, decoder: protobuf.NewDecoder(math.MaxInt64, errExceeded),
		interned: protobuf.NewDecoder(math.MaxInt64, errExceeded), interner: jsonread.NewInterner(),
	}
	d.interned.Intern(d.interner)
	d.t.APIVersion, d.t.Kind = gvk.ToAPIVersionAndKind()
	return d, nil
}

// Decode decodes an encoded object to maps and to JSON. Check must return the same error and count the same memory as Object, and an
// object with interned parts must be equal.
func (d *Decoder) Decode(raw []byte) (Forms, error) {
	checkErr := d.decoder.Check(d.message, raw, d.t)
	checked := d.decoder.Memory()
	obj, err := d.decoder.Object(d.message, raw, d.t)
	switch {
	case (err == nil) != (checkErr == nil):
		return Forms{}, fmt.Errorf("different errors of Object and Check: %w", errors.Join(err, checkErr))
	case err != nil:
		if _, interned := d.interned.Object(d.message, raw, d.t); interned == nil {
			return Forms{}, fmt.Errorf("no error of interning: %w", err)
		}
		return Forms{}, &Error{err}
	case checked != d.decoder.Memory():
		return Forms{}, fmt.Errorf("different memory of Object and Check: %d and %d bytes", d.decoder.Memory(), checked)
	}
	for range 3 { // parts are found from the third time on
		interned, err := d.interned.Object(d.message, raw, d.t)
		if err != nil || !reflect.DeepEqual(obj, interned) {
			return Forms{}, fmt.Errorf("interned: %v in place of %v: %w", interned, obj, err)
		}
		d.interner.NewObject(interned, false)
	}
	text, err := d.message.AppendJSON(nil, raw, d.t)
	return Forms{obj, text}, err
}

// Error is an error of the decoder, as opposed to an error of its use.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// IsUnknownField reports whether err is a *protobuf.UnknownFieldError.
func IsUnknownField(err error) bool {
	_, is := errors.AsType[*protobuf.UnknownFieldError](err)
	return is
}

// List decodes the items of a list's body. The kind of the items is the list's without the suffix List.
func List(body io.Reader) (items []Forms, err error) {
	l := protobuf.NewListReader(body, math.MaxInt64, errExceeded)
	t, err := l.Header()
	if err != nil {
		return nil, err
	}
	d, err := New(schema.FromAPIVersionAndKind(t.APIVersion, strings.TrimSuffix(t.Kind, "List")))
	if err != nil {
		return nil, err
	}
	for {
		raw, err := l.Next()
		if errors.Is(err, io.EOF) {
			return items, nil
		}
		if err != nil {
			return nil, err
		}
		item, err := d.Decode(raw)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
}
