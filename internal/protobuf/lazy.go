package protobuf

import (
	"encoding/binary"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/jsonread"
)

// Kind is the type of encoded objects.
type Kind struct {
	*Message
	metav1.TypeMeta
}

// NewLazy returns an *unstructured.Lazy of an encoded object. It has its own memory. d validates and counts the object like
// [Decoder.Object]. Package unstructured sets NewLazy, since its own API has no Protobuf.
var NewLazy func(d *Decoder, kind Kind, raw []byte) (lazy any, err error)

// A packed object is an encoded object behind its type: a marker, apiVersion and kind, each of these with its length before it. No
// JSON begins with a marker.
const (
	markObject   = 'k'
	markMetadata = 'm' // the message is PartialObjectMetadata, whatever the type is
)

// IsPacked reports whether data is a packed object.
func IsPacked(data []byte) bool {
	return len(data) > 0 && (data[0] == markObject || data[0] == markMetadata)
}

// Pack returns a packed object without spare capacity.
func (k Kind) Pack(raw []byte) []byte {
	mark := byte(markObject)
	if k.Message == partialObjectMetadata() {
		mark = markMetadata
	}
	var buf [64]byte
	prefix := appendText(appendText(append(buf[:0], mark), k.APIVersion), k.Kind)
	return slices.Clip(slices.Concat(prefix, raw))
}

func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// Unpack splits a packed object.
func Unpack(data []byte) (k Kind, raw []byte) {
	apiVersion, rest, _ := delimited(data[1:])
	kind, raw, _ := delimited(rest)
	k.TypeMeta = metav1.TypeMeta{APIVersion: string(apiVersion), Kind: string(kind)}
	if data[0] == markMetadata {
		k.Message = partialObjectMetadata()
	} else {
		k.Message, _ = Lookup(schema.FromAPIVersionAndKind(k.APIVersion, k.Kind))
	}
	return k, raw
}

func partialObjectMetadata() *Message {
	m, _ := Lookup(schema.GroupVersionKind{Group: metav1.GroupName, Version: "v1", Kind: "PartialObjectMetadata"})
	return m
}

// Offsets returns the indexes in a packed, checked object of the kind of the fields in [jsonread.FieldOffsets]. Each is the index of
// the value's length.
func (k Kind) Offsets(data []byte) (offsets jsonread.FieldOffsets) {
	offsets.Set(jsonread.FieldAPIVersion, 1)
	_, rest, _ := delimited(data[1:])
	offsets.Set(jsonread.FieldKind, len(data)-len(rest))
	_, raw, _ := delimited(rest)
	base := len(data) - len(raw)
	k.eachField(raw, func(f *field, start, end int) {
		if !f.isMessage() {
			return
		}
		known := jsonread.ObjectField(f.name)
		offsets.Set(known, base+start)
		if known != jsonread.FieldMetadata {
			return
		}
		content, _, _ := delimited(raw[start:end])
		inner := base + end - len(content)
		f.message.eachField(content, func(f *field, start, _ int) {
			if f.form == 's' && f.shape == 0 {
				offsets.Set(jsonread.MetadataField(f.name), inner+start)
			}
		})
	})
	offsets.Set(jsonread.NoField, 0)
	return offsets
}

// Text returns the string at an index from [Kind.Offsets]. Index 0 is the empty string.
func Text(data []byte, i int) []byte {
	if i == 0 {
		return nil
	}
	content, _, _ := delimited(data[i:])
	return validUTF8(content)
}

// PackMetadata returns a packed object of a given type, with the metadata at index i of data, from [Kind.Offsets].
func PackMetadata(of metav1.TypeMeta, data []byte, i int) (k Kind, packed []byte) {
	var raw []byte
	if i != 0 {
		content, _, _ := delimited(data[i:])
		const tag = 1<<3 | wireBytes // of the metadata of every kind, like that of PartialObjectMetadata
		raw = append(binary.AppendUvarint([]byte{tag}, uint64(len(content))), content...)
	}
	k = Kind{partialObjectMetadata(), of}
	return k, k.Pack(raw)
}
