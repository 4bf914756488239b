// Package protobuf decodes built-in objects from Protobuf, the form sent by kubectl and client-go, to the same maps as from JSON.
// Messages are decoded by a recorded table of field numbers and names: the Go types are large.
//
// Present fields are kept even if zero, because Protobuf encodes a pointer to zero like zero. package builtin later drops the zero
// fields with omitempty in their Go type.
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

	"github.com/anykind/anykind/apitest/internal/limits"
	"github.com/anykind/anykind/apitest/internal/nested"
)

// MediaType is the media type of bodies for Decode.
const MediaType = "application/vnd.kubernetes.protobuf"

var magic = []byte{'k', '8', 's', 0}

var (
	errTruncated = errors.New("unexpected end of the message")
	errDepth     = errors.New("exceeded max depth")

	// ErrTooLarge reports a decoded size above [limits.MaxDecoded].
	ErrTooLarge = fmt.Errorf("limit of the decoded object is %d", limits.MaxDecoded)
)

// maxDepth is encoding/json's limit.
const maxDepth = 10_000

// Estimated bytes of values in memory. A map's first entry allocates room for eight. A growing list has up to twice its items.
const (
	emptyMap     = 48
	firstEntries = 272
	moreEntries  = 80
	listItem     = 32
	shortValue   = 16
	// jsonByte is the estimate for a byte of JSON within a message, in the worst case.
	jsonByte = 60
)

// decoder decodes the messages of a body within a budget. Two bytes on the wire may become a map with an entry.
type decoder struct {
	*table
	left  int // of limits.MaxDecoded
	depth int // of the message
}

func (d *decoder) charge(size int) error {
	if d.left -= size; d.left < 0 {
		return ErrTooLarge
	}
	return nil
}

// chargeEntry charges the memory of a new entry.
func (d *decoder) chargeEntry(entries map[string]any, key string) error {
	if _, found := entries[key]; found {
		return nil
	}
	switch n := len(entries); {
	case n == 0:
		return d.charge(firstEntries)
	case n >= 8:
		return d.charge(moreEntries)
	}
	return nil
}

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
	d := &decoder{table: table, left: limits.MaxDecoded}
	obj, err := d.message(raw, table.types[name])
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", kind, err)
	}
	obj["apiVersion"] = apiVersion
	obj["kind"] = kind
	return obj, nil
}

// field is a field on the wire: bytes of a length-delimited field, else a number.
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
			value.bytes = data[m : m+int(size)]
			n = m + int(size)
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

func (d *decoder) message(data []byte, m *message) (map[string]any, error) {
	if d.depth++; d.depth > maxDepth {
		return nil, errDepth
	}
	defer func() { d.depth-- }()
	if err := d.charge(emptyMap); err != nil {
		return nil, err
	}
	obj := map[string]any{}
	return obj, d.into(obj, data, m)
}

func (d *decoder) into(obj map[string]any, data []byte, m *message) error {
	return eachField(data, func(number int, value field) error {
		f, found := m.fields[number]
		if !found {
			return nil
		}
		if f.name == "." {
			return d.into(obj, value.bytes, d.types[f.expression[1:]])
		}
		return d.set(obj, f, value)
	})
}

func (d *decoder) set(obj map[string]any, f messageField, value field) error {
	if err := d.chargeEntry(obj, f.name); err != nil {
		return err
	}
	switch f.expression[0] {
	case '[':
		if err := d.charge(listItem); err != nil {
			return err
		}
		item, err := d.value(f.expression[1:], value)
		if err != nil {
			return err
		}
		list := nested.Slice(obj, f.name)
		obj[f.name] = append(list, item)
	case '{':
		entries := nested.Map(obj, f.name)
		if entries == nil {
			if err := d.charge(emptyMap); err != nil {
				return err
			}
			entries = map[string]any{}
			obj[f.name] = entries
		}
		return d.entry(entries, f.expression[1:], value.bytes)
	default:
		decoded, err := d.value(f.expression, value)
		if err != nil {
			return err
		}
		obj[f.name] = decoded
	}
	return nil
}

// entry adds an entry of a map, which is a message of a key and a value. An entry without a value has the zero value.
func (d *decoder) entry(entries map[string]any, expression string, data []byte) error {
	key := ""
	value := field{}
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
	if err := d.chargeEntry(entries, key); err != nil {
		return err
	}
	if err := d.charge(len(key)); err != nil {
		return err
	}
	entries[key], err = d.value(expression, value)
	return err
}

func (d *decoder) value(expression string, value field) (any, error) {
	if err := d.charge(shortValue); err != nil {
		return nil, err
	}
	switch expression[0] {
	case 's', 'y':
		if err := d.charge(2 * len(value.bytes)); err != nil {
			return nil, err
		}
	}
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
		return d.message(value.bytes, d.types[expression[1:]])
	case '!':
		return d.special(expression[1:], value.bytes)
	case '*', '[':
		items := []any{}
		err := eachField(value.bytes, func(_ int, item field) error {
			if err := d.charge(listItem); err != nil {
				return err
			}
			decoded, err := d.value(expression[1:], item)
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
