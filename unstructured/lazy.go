package unstructured

import (
	"bytes"
	"slices"
	"strings"

	jsoniter "github.com/json-iterator/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/jsonread"
)

// Lazy is an object of any kind that has been checked but not decoded: it keeps its JSON, decodes only what is read, and
// becomes a full [Object] on demand. It takes about the memory of its JSON, a fraction of an Object's, and making one
// a fraction of the time. [Get] reads any field of it; its methods are Object's and return what Object's would.
//
// A Lazy never changes: it may be shared between goroutines. It owns its memory, and what its methods return, but for
// JSON, does not keep it alive. Make one with [DecodeLazy], [ListDecoder.NextLazy] or [WatchDecoder.NextLazy].
type Lazy struct {
	data    []byte
	offsets jsonread.FieldOffsets
}

// DecodeLazy reads one object, which must be all of data. It accepts and rejects what [Decode] does, with the same
// errors, but for objects longer than 4 GiB. It keeps a copy of data's object. Safe for concurrent use.
func DecodeLazy(data []byte) (*Lazy, error) { return Limits{}.DecodeLazy(data) }

// DecodeLazy is [DecodeLazy] with the limit l.Object, which is for the decoded object here, too.
func (l Limits) DecodeLazy(data []byte) (*Lazy, error) {
	r, err := l.borrow(data)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	obj, err := readLazy(r)
	if err == nil {
		err = r.End()
	}
	if err == nil {
		err = obj.checkType()
	}
	if err != nil {
		return nil, err
	}
	return obj, nil
}

// readLazy reads an object, which must be next.
func readLazy(r *jsonread.Reader) (*Lazy, error) {
	if err := r.ObjectStart(); err != nil {
		return nil, err
	}
	data, offsets, err := r.RawObject()
	if err != nil {
		return nil, err
	}
	return Lazy{data: data, offsets: offsets}.clone(), nil
}

// clone returns l with memory of its own, and no more than it needs.
func (l Lazy) clone() *Lazy {
	return &Lazy{data: slices.Clip(bytes.Clone(l.data)), offsets: l.offsets}
}

// checkType rejects what checkType rejects of the decoded object, with the same errors.
func (l *Lazy) checkType() error {
	apiVersion := l.raw(jsonread.FieldAPIVersion)
	if len(l.raw(jsonread.FieldKind)) > 0 && bytes.Count(apiVersion, []byte("/")) < 2 && bytes.IndexByte(apiVersion, '\\') < 0 {
		return nil
	}
	obj, err := l.Object()
	if err != nil {
		return err
	}
	return checkType(obj.Object)
}

func (l *Lazy) hasType() bool {
	return len(l.raw(jsonread.FieldKind)) > 0 || len(l.raw(jsonread.FieldAPIVersion)) > 0
}

// Object decodes all of it, as [Decode] does. Each call returns an object of its own. The error is always nil unless l
// is the zero Lazy.
func (l *Lazy) Object() (*Object, error) {
	m, _, err := readJSON(l.data)
	if err != nil {
		return nil, err
	}
	return &Object{Object: m}, nil
}

// JSON returns the object as the server sent it, with kind and apiVersion. It is shared: it must not be changed, and
// keeps the Lazy's memory alive.
func (l *Lazy) JSON() []byte { return l.data }

// MarshalJSON returns JSON, for encoding/json.
func (l *Lazy) MarshalJSON() ([]byte, error) { return l.data, nil }

// String returns the kind, namespace and name, without the contents, which may be secret.
func (l *Lazy) String() string {
	name := l.GetName()
	if namespace := l.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return l.GetKind() + " " + name
}

// GetKind returns what Object's returns.
func (l *Lazy) GetKind() string { return l.text(jsonread.FieldKind) }

// GetAPIVersion returns what Object's returns.
func (l *Lazy) GetAPIVersion() string { return l.text(jsonread.FieldAPIVersion) }

// GroupVersionKind returns what Object's returns: empty if the apiVersion is malformed.
func (l *Lazy) GroupVersionKind() schema.GroupVersionKind {
	gv, err := schema.ParseGroupVersion(l.GetAPIVersion())
	if err != nil {
		return schema.GroupVersionKind{}
	}
	return gv.WithKind(l.GetKind())
}

// GetName returns what Object's returns.
func (l *Lazy) GetName() string { return l.text(jsonread.FieldName) }

// GetNamespace returns what Object's returns.
func (l *Lazy) GetNamespace() string { return l.text(jsonread.FieldNamespace) }

// GetUID returns what Object's returns.
func (l *Lazy) GetUID() types.UID { return types.UID(l.text(jsonread.FieldUID)) }

// GetResourceVersion returns what Object's returns.
func (l *Lazy) GetResourceVersion() string { return l.text(jsonread.FieldResourceVersion) }

// GetLabels returns what Object's returns.
func (l *Lazy) GetLabels() map[string]string { return l.metadataField("labels").GetLabels() }

// GetAnnotations returns what Object's returns.
func (l *Lazy) GetAnnotations() map[string]string {
	return l.metadataField("annotations").GetAnnotations()
}

// GetOwnerReferences returns what Object's returns.
func (l *Lazy) GetOwnerReferences() []metav1.OwnerReference {
	return l.metadataField("ownerReferences").GetOwnerReferences()
}

// metadataField returns an object with this field of metadata alone, for apimachinery to convert.
func (l *Lazy) metadataField(field string) *Object {
	v, _, _ := l.walk([]string{"metadata", field})
	return &Object{Object: map[string]any{"metadata": map[string]any{field: v}}}
}

// text returns the string that a field is, empty if as scriptedmething else.
func (l *Lazy) text(f jsonread.Field) string { return string(jsonread.Unquote(l.raw(f))) }

// raw returns the bytes between the quotes of the string that a field is.
func (l *Lazy) raw(f jsonread.Field) []byte { return jsonread.RawString(l.data, l.offsets.Index(f)) }

// Metadata returns an object of the given kind and apiVersion with l's metadata and nothing else, in memory of its own.
func (l *Lazy) Metadata(of metav1.TypeMeta) *Lazy {
	stream := encoding.BorrowStream(nil)
	defer encoding.ReturnStream(stream)
	stream.WriteRaw("{")
	offsets := writeType(stream, of)
	var metadata []byte
	if start := l.offsets.Index(jsonread.FieldMetadata); start != 0 {
		metadata = l.data[start:jsonread.ValueEnd(l.data, start)]
		stream.WriteRaw(`,"metadata":`)
		for f := jsonread.FieldMetadata; int(f) < len(l.offsets); f++ {
			if old := l.offsets.Index(f); old != 0 {
				offsets.Set(f, stream.Buffered()+old-start)
			}
		}
	}
	data := slices.Concat(stream.Buffer(), metadata, []byte("}"))
	return &Lazy{data: slices.Clip(data), offsets: offsets}
}

// Without returns the object without the field at a path of names, in memory of its own; l itself if it has no such field. As
// the Transform of a cache it drops what nobody reads, such as metadata.managedFields, a third of many objects.
func (l *Lazy) Without(fields ...string) *Lazy {
	if l == nil || len(l.data) == 0 || len(fields) == 0 {
		return l
	}
	parent := 0
	last := len(fields) - 1
	for _, field := range fields[:last] {
		if parent = l.member(parent, field); parent == 0 || l.data[parent] != '{' {
			return l
		}
	}
	data := l.data
	for {
		start, end, found := jsonread.MemberRange(data, parent, fields[last])
		if !found {
			break
		}
		data = slices.Clip(slices.Concat(data[:start], data[end:]))
	}
	if len(data) == len(l.data) {
		return l
	}
	r := jsonread.Borrow(data)
	defer r.Release()
	_, offsets, err := r.RawObject()
	if err != nil {
		return l // never: it has been checked, see TestLazy_Without
	}
	return &Lazy{data: data, offsets: offsets}
}

// itemType is the kind and apiVersion of a list's items that have neither, and the end of their JSON then: behind all
// other members these are the ones that count.
type itemType struct {
	metav1.TypeMeta
	suffix  []byte
	offsets jsonread.FieldOffsets // in suffix
	size    int64                 // memory that it adds to an item, full or lazy
}

// typeSize is the memory of kind and apiVersion in an item without fields, but for their text.
const typeSize = 512

func newItemType(list metav1.TypeMeta) *itemType {
	stream := encoding.BorrowStream(nil)
	defer encoding.ReturnStream(stream)
	t := &itemType{TypeMeta: metav1.TypeMeta{Kind: strings.TrimSuffix(list.Kind, "List"), APIVersion: list.APIVersion}}
	stream.WriteRaw(",")
	t.offsets = writeType(stream, t.TypeMeta)
	stream.WriteRaw("}")
	t.suffix = bytes.Clone(stream.Buffer())
	t.size = typeSize + int64(len(t.suffix))
	return t
}

func writeType(stream *jsoniter.Stream, t metav1.TypeMeta) (offsets jsonread.FieldOffsets) {
	stream.WriteRaw(`"kind":`)
	offsets.Set(jsonread.FieldKind, stream.Buffered())
	stream.WriteString(t.Kind)
	stream.WriteRaw(`,"apiVersion":`)
	offsets.Set(jsonread.FieldAPIVersion, stream.Buffered())
	stream.WriteString(t.APIVersion)
	return offsets
}

// typed is clone with a kind and an apiVersion.
func (l Lazy) typed(t *itemType) *Lazy {
	body := bytes.TrimRight(l.data[:len(l.data)-1], " \t\r\n")
	suffix := t.suffix
	shift := len(body)
	if len(body) == 1 { // the brace alone
		suffix = suffix[1:]
		shift = 0
	}
	for _, f := range []jsonread.Field{jsonread.FieldKind, jsonread.FieldAPIVersion} {
		l.offsets.Set(f, shift+t.offsets.Index(f))
	}
	return &Lazy{data: slices.Clip(slices.Concat(body, suffix)), offsets: l.offsets}
}
