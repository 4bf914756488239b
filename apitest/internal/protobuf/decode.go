// Package protobuf decodes the Protobuf form of built-in objects, which kubectl and controllers send, into the maps that their JSON
// would decode to. Messages are decoded by a recorded table of numbers and names, not by Go types, which are large.
//
// A field that is present is kept, zero or not: the wire does not tell a pointer to zero from zero. What decodes the result by the
// kind's Go type drops what that type leaves out.
package protobuf

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MediaType is that of a request whose body Decode reads.
const MediaType = "application/vnd.kubernetes.protobuf"

var magic = []byte{'k', '8', 's', 0}

var errTruncated = errors.New("unexpected end of the message")

// Decode returns the object in a body. The error is for a Status 400.
func Decode(body []byte) (map[string]any, error) {
	content, found := bytes.CutPrefix(body, magic)
	if !found {
		return nil, fmt.Errorf("provided data does not appear to be a protobuf message, expected prefix %v", magic)
	}
	var apiVersion, kind string
	var raw []byte
	err := eachField(content, func(number int, value field) error {
		switch number {
		case 1:
			return eachField(value.bytes, func(number int, value field) error {
				switch number {
				case 1:
					apiVersion = string(value.bytes)
				case 2:
					kind = string(value.bytes)
				}
				return nil
			})
		case 2:
			raw = value.bytes
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, err
	}
	table := messages()
	name, found := table.kinds[gv.WithKind(kind)]
	if !found {
		return nil, fmt.Errorf("no kind %q is registered for version %q", kind, apiVersion)
	}
	obj, err := table.message(raw, table.types[name])
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", kind, err)
	}
	obj["apiVersion"], obj["kind"] = apiVersion, kind
	return obj, nil
}

// field is a field on the wire: bytes for a length-delimited one, else number.
type field struct {
	wire   int
	number uint64
	bytes  []byte
}

func eachField(data []byte, visit func(number int, value field) error) error {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 {
			return errTruncated
		}
		data = data[n:]
		value := field{wire: int(tag & 7)}
		switch value.wire {
		case 0:
			if value.number, n = binary.Uvarint(data); n <= 0 {
				return errTruncated
			}
		case 1, 5:
			n = 8
			if value.wire == 5 {
				n = 4
			}
			if len(data) < n {
				return errTruncated
			}
			var fixed [8]byte
			copy(fixed[:], data[:n])
			value.number = binary.LittleEndian.Uint64(fixed[:])
		case 2:
			size, m := binary.Uvarint(data)
			if m <= 0 || size > uint64(len(data)-m) {
				return errTruncated
			}
			value.bytes, n = data[m:m+int(size)], m+int(size)
		default:
			return fmt.Errorf("wire type %d is not supported", value.wire)
		}
		data = data[n:]
		if err := visit(int(tag>>3), value); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) message(data []byte, m *message) (map[string]any, error) {
	obj := map[string]any{}
	return obj, t.into(obj, data, m)
}

func (t *table) into(obj map[string]any, data []byte, m *message) error {
	return eachField(data, func(number int, value field) error {
		f, found := m.fields[number]
		if !found {
			return nil
		}
		if f.name == "." {
			return t.into(obj, value.bytes, t.types[f.expression[1:]])
		}
		return t.set(obj, f, value)
	})
}

func (t *table) set(obj map[string]any, f messageField, value field) error {
	switch f.expression[0] {
	case '[':
		item, err := t.value(f.expression[1:], value)
		if err != nil {
			return err
		}
		list, _ := obj[f.name].([]any)
		obj[f.name] = append(list, item)
	case '{':
		entries, _ := obj[f.name].(map[string]any)
		if entries == nil {
			entries = map[string]any{}
			obj[f.name] = entries
		}
		return t.entry(entries, f.expression[1:], value.bytes)
	default:
		decoded, err := t.value(f.expression, value)
		if err != nil {
			return err
		}
		obj[f.name] = decoded
	}
	return nil
}

// entry adds an entry of a map, which is a message of a key and a value. One without a value has the zero value.
func (t *table) entry(entries map[string]any, expression string, data []byte) error {
	key, value := "", field{}
	err := eachField(data, func(number int, part field) error {
		if number == 1 {
			key = string(part.bytes)
		} else {
			value = part
		}
		return nil
	})
	if err != nil {
		return err
	}
	entries[key], err = t.value(expression, value)
	return err
}

func (t *table) value(expression string, value field) (any, error) {
	switch expression[0] {
	case 's':
		return string(value.bytes), nil
	case 'b':
		return value.number != 0, nil
	case 'i':
		return int64(value.number), nil
	case 'd':
		return math.Float64frombits(value.number), nil
	case 'y':
		return base64.StdEncoding.EncodeToString(value.bytes), nil
	case 'm':
		return t.message(value.bytes, t.types[expression[1:]])
	case '!':
		return t.special(expression[1:], value.bytes)
	case '*', '[':
		items := []any{}
		err := eachField(value.bytes, func(_ int, item field) error {
			decoded, err := t.value(expression[1:], item)
			items = append(items, decoded)
			return err
		})
		return items, err
	}
	return nil, fmt.Errorf("unknown expression %q", expression)
}

func decodeJSON(data []byte) (any, error) {
	if len(data) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return numbers(value), nil
}

// numbers turns numbers into int64 and float64, as objects have them.
func numbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		if integer, err := value.Int64(); err == nil {
			return integer
		}
		float, _ := value.Float64()
		return float
	case map[string]any:
		for name, item := range value {
			value[name] = numbers(item)
		}
	case []any:
		for i, item := range value {
			value[i] = numbers(item)
		}
	}
	return value
}
