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
	"github.com/anykind/anykind/internal/protobuf"
)

// Lazy is an object of any kind, validated but not decoded. It keeps the JSON, decodes fields when they are read, and becomes a
// full [Object] on demand. A Lazy received as Protobuf keeps that form instead. A Lazy takes about the memory of its received form,
// a fraction of an Object's. Making a Lazy takes a fraction of the time. [Get] reads any field. The methods return the same results
// as Object's methods.
//
// A Lazy is immutable and may be shared between goroutines. It owns its memory. Only the results of JSON and MarshalJSON keep
// this memory alive. [DecodeLazy], [ListDecoder.NextLazy] and [WatchDecoder.NextLazy] return a Lazy.
type Lazy struct {
	data    []byte // JSON, or see lazy_protobuf.go
	offsets jsonread.FieldOffsets
}

// DecodeLazy reads a single object from all of data. It accepts the same data as [Decode] and returns the same errors. Objects
// longer than 4 GiB are an additional error. The result has a copy of the data. DecodeLazy is safe for concurrent use.
func DecodeLazy(data []byte) (*Lazy, error) { return Limits{}.DecodeLazy(data) }

// DecodeLazy is [DecodeLazy] with the limit l.Object. The limit applies to the memory of the decoded object.
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

// readLazy reads an object. Any different value is an error.
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

// clone returns l in its own memory, without spare capacity.
func (l Lazy) clone() *Lazy {
	return &Lazy{data: slices.Clip(bytes.Clone(l.data)), offsets: l.offsets}
}

// checkType returns the same errors as checkType of the decoded object.
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

// Object decodes the whole object like [Decode]. Each call returns a new object. The error is always nil unless l is the zero
// Lazy.
func (l *Lazy) Object() (*Object, error) {
	if l.isProtobuf() {
		return l.protobufObject()
	}
	m, _, err := readJSON(l.data)
	if err != nil {
		return nil, err
	}
	return &Object{Object: m}, nil
}

// JSON returns the object as sent by the server, with kind and apiVersion. The slice may be shared: it must not be changed, and it
// may keep the Lazy's memory alive.
func (l *Lazy) JSON() []byte {
	text, _ := l.MarshalJSON()
	return text
}

// MarshalJSON implements json.Marshaler with the result of JSON.
func (l *Lazy) MarshalJSON() ([]byte, error) {
	if l.isProtobuf() {
		return l.protobufJSON()
	}
	return l.data, nil
}

// String returns the kind, namespace and name. It omits the contents, since they may be secret.
func (l *Lazy) String() string {
	name := l.GetName()
	if namespace := l.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return l.GetKind() + " " + name
}

// GetKind returns the kind, like Object's method.
func (l *Lazy) GetKind() string { return l.text(jsonread.FieldKind) }

// GetAPIVersion returns the apiVersion, like Object's method.
func (l *Lazy) GetAPIVersion() string { return l.text(jsonread.FieldAPIVersion) }

// GroupVersionKind returns the group, version and kind, like Object's method. The result is empty if the apiVersion is malformed.
func (l *Lazy) GroupVersionKind() schema.GroupVersionKind {
	gv, err := schema.ParseGroupVersion(l.GetAPIVersion())
	if err != nil {
		return schema.GroupVersionKind{}
	}
	return gv.WithKind(l.GetKind())
}

// GetName returns metadata.name, like Object's method.
func (l *Lazy) GetName() string { return l.text(jsonread.FieldName) }

// GetNamespace returns metadata.namespace, like Object's method.
func (l *Lazy) GetNamespace() string { return l.text(jsonread.FieldNamespace) }

// GetUID returns metadata.uid, like Object's method.
func (l *Lazy) GetUID() types.UID { return types.UID(l.text(jsonread.FieldUID)) }

// GetResourceVersion returns metadata.resourceVersion, like Object's method.
func (l *Lazy) GetResourceVersion() string { return l.text(jsonread.FieldResourceVersion) }

// GetLabels returns a copy of metadata.labels, like Object's method.
func (l *Lazy) GetLabels() map[string]string { return l.metadataField("labels").GetLabels() }

// GetAnnotations returns a copy of metadata.annotations, like Object's method.
func (l *Lazy) GetAnnotations() map[string]string {
	return l.metadataField("annotations").GetAnnotations()
}

// GetOwnerReferences returns a copy of metadata.ownerReferences, like Object's method.
func (l *Lazy) GetOwnerReferences() []metav1.OwnerReference {
	return l.metadataField("ownerReferences").GetOwnerReferences()
}

// metadataField returns an object with only this field of metadata. apimachinery's methods convert the field.
func (l *Lazy) metadataField(field string) *Object {
	v, _, _ := valueAt(l, []string{"metadata", field})
	return &Object{Object: map[string]any{"metadata": map[string]any{field: v}}}
}

// text returns the text of a string field, or "" for a field of a different type.
func (l *Lazy) text(f jsonread.Field) string {
	if l.isProtobuf() {
		return string(protobuf.Text(l.data, l.offsets.Index(f)))
	}
	return string(jsonread.Unquote(l.raw(f)))
}

// raw returns the bytes between the quotes of a string field, or nil for a field of a different type.
func (l *Lazy) raw(f jsonread.Field) []byte { return jsonread.RawString(l.data, l.offsets.Index(f)) }

// Metadata returns an object of the given kind and apiVersion with l's metadata only. The result has its own memory.
func (l *Lazy) Metadata(of metav1.TypeMeta) *Lazy {
	if l.isProtobuf() {
		return l.protobufMetadata(of)
	}
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

// Without returns the object without the field at a path of names. The result has its own memory, but is l itself if the field
// does not exist. As the Transform of a cache, Without drops unused fields, such as metadata.managedFields, a third of many
// objects.
func (l *Lazy) Without(fields ...string) *Lazy {
	if isNil(l) || len(fields) == 0 {
		return l
	}
	if l.isProtobuf() {
		return l.protobufWithout(fields)
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
		return l // never: the JSON is valid, see TestLazy_Without
	}
	return &Lazy{data: data, offsets: offsets}
}

// itemType is the kind and apiVersion of list items with neither. In an item's JSON, suffix replaces the closing brace. Its
// fields come last and therefore win over empty fields of the same name.
type itemType struct {
	metav1.TypeMeta
	suffix  []byte
	offsets jsonread.FieldOffsets // in suffix
	size    int64                 // memory added to an item, full or lazy
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
