package jsonread

import "slices"

// Field is an object field with an offset in [FieldOffsets]: its value is found without reading the JSON before it.
type Field int

// Fields with an offset.
const (
	NoField Field = iota
	FieldKind
	FieldAPIVersion
	FieldSpec
	FieldStatus
	FieldMetadata
	FieldName // this and the following fields are in metadata
	FieldNamespace
	FieldUID
	FieldResourceVersion
	fieldCount
)

// FieldOffsets holds the indexes of the fields' values. If a field name occurs twice, the last field wins. Every lazy object of a
// cache has offsets, so an index has 32 bits and limits the object to 4 GiB.
type FieldOffsets [fieldCount]uint32

// Index returns the index of a field's value, or 0 for no value.
func (o *FieldOffsets) Index(f Field) int { return int(o[f]) }

// Set sets the index of a field's value.
func (o *FieldOffsets) Set(f Field, i int) { o[f] = uint32(i) } //nolint:gosec // less than 4 GiB, see RawObject

var fieldNames = [fieldCount]string{
	FieldKind: "kind", FieldAPIVersion: "apiVersion", FieldSpec: "spec", FieldStatus: "status", FieldMetadata: "metadata",
	FieldName: "name", FieldNamespace: "namespace", FieldUID: "uid", FieldResourceVersion: "resourceVersion",
}

// ObjectField returns the object's field with this name, or NoField if the field has no offset.
func ObjectField(name string) Field {
	return max(Field(slices.Index(fieldNames[:FieldName], name)), NoField)
}

// MetadataField returns the metadata field with this name, or NoField if the field has no offset.
func MetadataField(name string) Field {
	if i := slices.Index(fieldNames[FieldName:], name); i >= 0 {
		return FieldName + Field(i)
	}
	return NoField
}

// expectField sets the field of the next value. A second metadata field clears the offsets of the first.
func (s *scanner) expectField(name []byte) {
	name = Unquote(name)
	if s.depth == 2 {
		s.next = MetadataField(string(name))
		return
	}
	s.next = ObjectField(string(name))
	if s.next == FieldMetadata {
		clear(s.offsets[FieldMetadata:])
	}
}
