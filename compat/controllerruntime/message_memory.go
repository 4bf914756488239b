package controllerruntime

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Generated code has no limits: in a list of structs, two bytes of a message become hundreds, and messages within each other need
// stack. The memory of a message in its Go type is summed up before it is decoded. The Go types' tags have the numbers of fields.

const (
	// maxGrowth bounds the bytes of memory for a byte of a message: an empty struct in a list takes two bytes.
	maxGrowth = 1 << 10
	// sliceGrowth is the growth of a slice's array.
	sliceGrowth = 2
	// mapSize bounds the memory of an entry of a map, besides its key and value, which are in a group of eight.
	mapSize = 64
	// maxDepth is the maximum depth of messages within each other, as for JSON.
	maxDepth = 10_000
)

// exceedsMemory reports whether a message may take more memory than limit in its Go type, a struct.
func exceedsMemory(raw []byte, t reflect.Type, limit int64) bool {
	m := messageMeter{left: limit}
	m.message(messageTypeOf(t), raw, maxDepth)
	return m.left < 0
}

// messageMeter sums up the memory of a message. It ends at an invalid field, like generated code.
type messageMeter struct{ left int64 }

// message counts a message and reports whether to continue.
func (m *messageMeter) message(t *messageType, raw []byte, depth int) bool {
	if depth == 0 {
		m.left = -1
	}
	for len(raw) > 0 && m.left >= 0 {
		tag, content, rest := nextField(raw)
		if tag == 0 {
			return false
		}
		raw = rest
		number := tag >> 3
		if number >= uint64(len(t.fields)) {
			continue // generated code skips it
		}
		field := &t.fields[number]
		m.left -= field.memory
		switch {
		case field.message == nil:
			m.left -= int64(len(content))
		case !m.message(field.message(), content, depth-1):
			return false
		}
	}
	return m.left >= 0
}

// messageType has the fields of a Go type by number.
type messageType struct{ fields []messageFieldType }

type messageFieldType struct {
	memory  int64               // of an occurrence, besides its content
	message func() *messageType // nil unless the field has a message
}

var messageTypes sync.Map // from reflect.Type to *messageType

func messageTypeOf(t reflect.Type) *messageType {
	known, found := messageTypes.Load(t)
	if !found {
		known, _ = messageTypes.LoadOrStore(t, newMessageType(t))
	}
	return known.(*messageType) //nolint:forcetypeassert // the only type
}

func newMessageType(t reflect.Type) *messageType {
	m := &messageType{}
	for i := range t.NumField() {
		words := strings.Split(t.Field(i).Tag.Get("protobuf"), ",")
		if len(words) < 2 {
			continue
		}
		number, err := strconv.Atoi(words[1])
		if err != nil {
			continue
		}
		for len(m.fields) <= number {
			m.fields = append(m.fields, messageFieldType{})
		}
		m.fields[number] = fieldTypeOf(t.Field(i).Type)
	}
	return m
}

func fieldTypeOf(t reflect.Type) messageFieldType {
	switch {
	case t.Kind() == reflect.Pointer:
		return messageFieldType{int64(t.Elem().Size()), messageOf(t.Elem())}
	case isNullable(t):
		return messageFieldType{0, messageOf(t)}
	case t.Kind() == reflect.Slice:
		return messageFieldType{sliceGrowth * int64(t.Elem().Size()), messageOf(t.Elem())}
	case t.Kind() == reflect.Map:
		entry := &messageType{make([]messageFieldType, 3)} // a key and a value
		entry.fields[2] = messageFieldType{0, messageOf(t.Elem())}
		return messageFieldType{mapSize + 8*int64(t.Key().Size()+t.Elem().Size()), func() *messageType { return entry }}
	default:
		return messageFieldType{0, messageOf(t)}
	}
}

// isNullable reports whether values of t are messages with a list, such as metav1.Verbs.
func isNullable(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Name() != "" && t.Elem().Kind() != reflect.Uint8
}

// messageOf returns a function for the message type of t, evaluated late because types contain themselves. It is nil for other types.
func messageOf(t reflect.Type) func() *messageType {
	switch {
	case t.Kind() == reflect.Struct:
		return func() *messageType { return messageTypeOf(t) }
	case isNullable(t):
		wrapper := &messageType{[]messageFieldType{{}, fieldTypeOf(reflect.SliceOf(t.Elem()))}}
		return func() *messageType { return wrapper }
	default:
		return nil
	}
}
