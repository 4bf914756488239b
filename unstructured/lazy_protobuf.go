package unstructured

import (
	"errors"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/protobuf"
)

// A Lazy of a built-in kind may keep the object as Protobuf, as sent by the server: its data is a packed object of
// internal/protobuf. Its methods return the same results as for JSON. The object has been checked, so decoding it returns no
// errors.

func init() { protobuf.NewLazy = newProtobufLazy }

func newProtobufLazy(d *protobuf.Decoder, kind protobuf.Kind, raw []byte) (any, error) {
	if err := d.Check(kind.Message, raw, kind.TypeMeta); err != nil {
		return nil, err
	}
	data := kind.Pack(raw)
	switch unpacked, _ := protobuf.Unpack(data); {
	case unpacked.Message != kind.Message:
		return nil, errors.New("the message is of a different kind")
	case int64(len(data)) > math.MaxUint32:
		return nil, errors.New("the object is longer than 4 GiB")
	}
	return &Lazy{data: data, offsets: kind.Offsets(data)}, nil
}

func (l *Lazy) isProtobuf() bool { return protobuf.IsPacked(l.data) }

// borrowProtobuf returns a decoder of a Lazy. Its limits have been checked before.
func borrowProtobuf() *protobuf.Decoder { return protobuf.Borrow(math.MaxInt64, nil) }

func (l *Lazy) protobufObject() (*Object, error) {
	d := borrowProtobuf()
	defer d.Release()
	kind, raw := protobuf.Unpack(l.data)
	m, err := d.Object(kind.Message, raw, kind.TypeMeta)
	if err != nil {
		return nil, err
	}
	return &Object{Object: m}, nil
}

// protobufJSON returns l as JSON, in its own memory.
func (l *Lazy) protobufJSON() ([]byte, error) {
	kind, raw := protobuf.Unpack(l.data)
	return kind.AppendJSON(make([]byte, 0, 2*len(l.data)), raw, kind.TypeMeta)
}

// walkProtobuf is walk for Protobuf.
func (l *Lazy) walkProtobuf(fields []string) (any, bool, error) {
	d := borrowProtobuf()
	defer d.Release()
	kind, raw := protobuf.Unpack(l.data)
	v, done, found, err := d.Walk(kind, raw, fields)
	if err != nil || !found {
		return nil, false, err
	}
	return walk(v, fields, done)
}

// protobufMetadata is Metadata for Protobuf.
func (l *Lazy) protobufMetadata(of metav1.TypeMeta) *Lazy {
	kind, data := protobuf.PackMetadata(of, l.data, l.offsets.Index(jsonread.FieldMetadata))
	return &Lazy{data: data, offsets: kind.Offsets(data)}
}

// protobufWithout is Without for Protobuf. The result is JSON if only JSON can be without the field.
func (l *Lazy) protobufWithout(fields []string) *Lazy {
	kind, raw := protobuf.Unpack(l.data)
	if fields[0] != "kind" && fields[0] != "apiVersion" {
		if without, possible := kind.Without(raw, fields); possible {
			if len(without) == len(raw) {
				return l
			}
			data := kind.Pack(without)
			return &Lazy{data: data, offsets: kind.Offsets(data)}
		}
	}
	same, err := DecodeLazy(l.JSON())
	if err != nil {
		return l // never: the JSON is valid
	}
	if without := same.Without(fields...); without != same {
		return without
	}
	return l
}
