// Package typememory bounds the memory of JSON in a Go type before it is decoded. In a list of structs, two bytes of JSON may
// become hundreds.
package typememory

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/anykind/anykind/internal/jsonread"
)

// Exceeds reports whether JSON may take more memory than limit in the target type of into, a pointer. For most JSON the length or
// the number of values decides. All remaining JSON is read once, without decoding.
func Exceeds(data []byte, into any, limit int64) bool {
	t := reflect.TypeOf(into)
	if t == nil || t.Kind() != reflect.Pointer {
		return false
	}
	t = t.Elem()
	most := func(values int) int64 { return int64(values)*typeMemoryOf(t).perValue + int64(len(data)) }
	if most(len(data)/2+1) <= limit || most(countValues(data)) <= limit {
		return false
	}
	m := meter{r: jsonread.Borrow(data), left: limit}
	defer m.r.Release()
	m.value(t)
	return m.left < 0
}

// countValues returns an upper bound of the number of values in JSON. Except for the first, each value or its name follows a
// comma, a bracket or a brace.
func countValues(data []byte) int {
	return 1 + bytes.Count(data, []byte(",")) + bytes.Count(data, []byte("[")) + bytes.Count(data, []byte("{"))
}

// meter sums up the memory of JSON in a Go type, as decoded by encoding/json and similar decoders. It ends at invalid JSON, like
// these decoders.
type meter struct {
	r    *jsonread.Reader
	left int64
}

// value reads the next value and reports whether to continue.
func (m *meter) value(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		m.left -= int64(t.Elem().Size())
		t = t.Elem()
	}
	c, err := m.r.Peek()
	if err != nil {
		return false
	}
	memory := typeMemoryOf(t)
	switch kind := t.Kind(); {
	case memory.isOpaque, kind == reflect.Interface, c != '{' && c != '[':
		size, values, err := m.r.Skip()
		m.left -= size
		if memory.isOpaque || kind == reflect.Interface {
			m.left -= values * memory.perValue
		}
		return err == nil && m.left >= 0
	case c == '{' && kind == reflect.Struct:
		return m.members(func(name string) reflect.Type {
			field := memory.field(name)
			m.left -= field.embedded
			return field.typ
		})
	case c == '{' && kind == reflect.Map:
		m.left -= mapSize
		return m.members(func(name string) reflect.Type {
			m.left -= memory.perValue + int64(len(name))
			return t.Elem()
		})
	case c == '[' && (kind == reflect.Slice || kind == reflect.Array):
		return m.elements(t.Elem(), growth*int64(t.Elem().Size()))
	default: // a mismatch
		_, _, err := m.r.Skip()
		return err == nil
	}
}

// members reads an object. typeOf returns the type of a member, or nil for an ignored member.
func (m *meter) members(typeOf func(name string) reflect.Type) bool {
	name, more, err := m.r.OpenObject()
	for more && err == nil {
		if t := typeOf(name); t == nil {
			_, _, err = m.r.Skip()
		} else if !m.value(t) {
			return false
		}
		if err == nil {
			name, more, err = m.r.NextMember()
		}
	}
	return err == nil && m.left >= 0
}

func (m *meter) elements(t reflect.Type, size int64) bool {
	more, err := m.r.OpenList()
	for more && err == nil {
		m.left -= size
		if !m.value(t) {
			return false
		}
		more, err = m.r.NextElement()
	}
	return err == nil && m.left >= 0
}

// typeMemory describes the memory of a type.
type typeMemory struct {
	isOpaque bool  // the type decodes JSON itself
	perValue int64 // upper bound for each JSON value
	fields   map[string]fieldMemory
}

type fieldMemory struct {
	typ      reflect.Type // nil for an ignored field
	embedded int64        // memory of the embedded pointers around the field
}

const (
	growth   = 2   // of slices and maps
	mapSlots = 8   // of the smallest map
	mapSize  = 64  // of a map without slots
	anyValue = 432 // the largest cost of a jsonread value
)

var typeMemories sync.Map // from reflect.Type to *typeMemory

func typeMemoryOf(t reflect.Type) *typeMemory {
	known, found := typeMemories.Load(t)
	if !found {
		known, _ = typeMemories.LoadOrStore(t, newTypeMemory(t))
	}
	memory, _ := known.(*typeMemory)
	return memory
}

func newTypeMemory(t reflect.Type) *typeMemory {
	memory := &typeMemory{isOpaque: isUnmarshaler(reflect.PointerTo(t)), perValue: largestPart(t, map[reflect.Type]bool{})}
	if t.Kind() != reflect.Struct || memory.isOpaque {
		return memory
	}
	memory.fields = map[string]fieldMemory{}
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "-" || !f.IsExported() || f.Anonymous && tag == "" {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		field := fieldMemory{typ: f.Type}
		for i := range f.Index[:len(f.Index)-1] {
			if outer := t.FieldByIndex(f.Index[:i+1]).Type; outer.Kind() == reflect.Pointer {
				field.embedded += int64(outer.Elem().Size())
			}
		}
		for _, name := range []string{tag, folded(tag)} {
			if known, found := memory.fields[name]; !found || known.typ == nil {
				memory.fields[name] = field
			}
		}
	}
	return memory
}

// field returns the field with this name. encoding/json ignores case.
func (t *typeMemory) field(name string) fieldMemory {
	if field, found := t.fields[name]; found {
		return field
	}
	return t.fields[folded(name)]
}

func folded(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// largestPart returns the size of the largest slice element, map entry or pointer's target in values of t.
func largestPart(t reflect.Type, seen map[reflect.Type]bool) (size int64) {
	if seen[t] {
		return 0
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer:
		return max(int64(t.Elem().Size()), largestPart(t.Elem(), seen))
	case reflect.Slice:
		return max(growth*int64(t.Elem().Size()), largestPart(t.Elem(), seen))
	case reflect.Array:
		return largestPart(t.Elem(), seen)
	case reflect.Map:
		entry := mapSize + mapSlots*int64(t.Key().Size()+t.Elem().Size())
		return max(entry, largestPart(t.Key(), seen), largestPart(t.Elem(), seen))
	case reflect.Interface:
		return anyValue
	case reflect.Struct:
		for i := range t.NumField() {
			size = max(size, largestPart(t.Field(i).Type, seen))
		}
	default:
	}
	return size
}

func isUnmarshaler(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Unmarshaler]()) || t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
