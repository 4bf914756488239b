package jsonread

import "slices"

// Field is a field of an object whose value [FieldOffsets] find without reading what is before it.
type Field int

// Fields with an offset.
const (
	NoField Field = iota
	FieldKind
	FieldAPIVersion
	FieldSpec
	FieldStatus
	FieldMetadata
	FieldName // from here on within metadata
	FieldNamespace
	FieldUID
	FieldResourceVersion
	fieldCount
)

// FieldOffsets are the indexes at which the fields' values begin, of fields with one name the last. They take little memory,
// since every lazy object of a cache has them; so an object with offsets is shorter than 4 GiB.
type FieldOffsets [fieldCount]uint32

// Index returns the index of a field's value; 0 if there is none.
func (o *FieldOffsets) Index(f Field) int { return int(o[f]) }

// Set sets the index of a field's value.
func (o *FieldOffsets) Set(f Field, i int) { o[f] = uint32(i) } //nolint:gosec // less than 4 GiB, see RawObject

var fieldNames = [fieldCount]string{
	FieldKind: "kind", FieldAPIVersion: "apiVersion", FieldSpec: "spec", FieldStatus: "status", FieldMetadata: "metadata",
	FieldName: "name", FieldNamespace: "namespace", FieldUID: "uid", FieldResourceVersion: "resourceVersion",
}

// ObjectField returns the field of an object with that name; NoField if it has no offset.
func ObjectField(name string) Field {
	return max(Field(slices.Index(fieldNames[:FieldName], name)), NoField)
}

// MetadataField is ObjectField for the fields of metadata.
func MetadataField(name string) Field {
	if i := slices.Index(fieldNames[FieldName:], name); i >= 0 {
		return FieldName + Field(i)
	}
	return NoField
}

// expectField notes which field the next value is. A second metadata replaces the first and all that is in it.
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
