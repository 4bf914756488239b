package unstructured

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	jsoniter "github.com/json-iterator/go"

	"github.com/anykind/anykind/internal/jsonread"
)

// Encode writes obj as JSON: fields sorted by name, HTML not escaped, no newline at the end. [Decode] of the result equals obj
// but for numbers: an integer of any Go type comes back as int64 if it fits, and a float64 without a fraction as int64.
//
// obj may hold any Go value supported by encoding/json: integers, typed slices and maps, structs, json.Marshalers. Invalid UTF-8
// is replaced by U+FFFD, as in encoding/json. A value without a JSON form is an error with its path: ".spec.foo[2]: cannot encode
// chan int". So is a value rejected by Decode: a json.Number beyond float64, or nesting beyond 10000. A nil obj or a nil
// obj.Object is an error. A missing kind is not, since patches have none. Safe for concurrent use as long as obj is not changed.
func Encode(obj *Object) ([]byte, error) {
	if isNil(obj) {
		return nil, errors.New("cannot encode a nil object")
	}
	return encodeValue(obj.Object, 0)
}

// encodeValue writes a value at nesting level depth.
func encodeValue(v any, depth int) ([]byte, error) {
	stream := encoding.BorrowStream(nil)
	e := encoder{Stream: stream, depth: depth}
	err := e.value(v)
	data := bytes.Clone(stream.Buffer())
	if cap(stream.Buffer()) <= maxPooledStream {
		encoding.ReturnStream(stream)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

var encoding = jsoniter.Config{}.Froze()

// maxPooledStream limits the size of a reused buffer, in bytes. Larger buffers are left to the garbage collector.
const maxPooledStream = 64 << 10

type encoder struct {
	*jsoniter.Stream
	depth int
	names []string // of the objects being written, innermost last
}

// value writes the types returned by Decode; reflected writes all remaining types.
func (e *encoder) value(v any) error {
	switch v := v.(type) {
	case nil:
		e.WriteNil()
	case bool:
		e.WriteBool(v)
	case int64:
		e.WriteInt64(v)
	case int:
		e.WriteInt(v)
	case float64:
		return e.float(v)
	case string:
		e.WriteString(validText(v))
	case map[string]any:
		return e.object(v)
	case []any:
		return e.array(v)
	case json.Number:
		if _, err := jsonread.ParseNumber([]byte(v)); err != nil {
			return &encodeError{cause: fmt.Errorf("cannot encode json.Number: %w", err)}
		}
		e.WriteRaw(string(v))
	default:
		return e.reflected(v)
	}
	return nil
}

func (e *encoder) float(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return &encodeError{cause: fmt.Errorf("cannot encode %v", f)}
	}
	e.WriteFloat64(f)
	return nil
}

func (e *encoder) object(m map[string]any) error {
	if m == nil {
		e.WriteNil()
		return nil
	}
	if err := e.enter(); err != nil {
		return err
	}
	base := len(e.names)
	for name := range m {
		e.names = append(e.names, name)
	}
	names := e.names[base:]
	slices.Sort(names)
	e.WriteObjectStart()
	for i, name := range names {
		if i > 0 {
			e.WriteMore()
		}
		e.WriteObjectField(validText(name))
		if err := e.value(m[name]); err != nil {
			return prependStep(step(name), err)
		}
	}
	e.WriteObjectEnd()
	e.names = e.names[:base]
	e.depth--
	return nil
}

func (e *encoder) array(list []any) error {
	if list == nil {
		e.WriteNil()
		return nil
	}
	if err := e.enter(); err != nil {
		return err
	}
	e.WriteArrayStart()
	for i, v := range list {
		if i > 0 {
			e.WriteMore()
		}
		if err := e.value(v); err != nil {
			return prependStep(step(strconv.Itoa(i)), err)
		}
	}
	e.WriteArrayEnd()
	e.depth--
	return nil
}

// enter rejects values nested too deeply for Decode. It also stops at a map containing itself.
func (e *encoder) enter() error {
	e.depth++
	if e.depth > jsonread.MaxDepth {
		return &encodeError{cause: fmt.Errorf("nested deeper than %d", jsonread.MaxDepth)}
	}
	return nil
}
