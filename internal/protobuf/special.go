package protobuf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/jsonread"
)

// maxScalar is the maximum length of a scalar's text, in addition to the length of its message.
const maxScalar = 32

// special decodes a message with a JSON form of its own.
func (d *Decoder) special(f *field, content []byte) (any, error) {
	switch f.form {
	case 'T', 'U', 'D', 'Q', 'I':
		if err := d.charge(maxScalar + len(content)); err != nil {
			return nil, err
		}
		if d.checkOnly && (f.form == 'T' || f.form == 'U') {
			_, _, err := timestamp(content)
			return nil, err
		}
		text, isText, err := appendScalar(d.text[:0], f.form, content)
		if err != nil {
			return nil, err
		}
		d.text = text
		switch {
		case d.checkOnly:
			return nil, nil
		case isText:
			return d.values.Value(validUTF8(text)), nil
		case string(text) == "null":
			return nil, nil
		default:
			return jsonread.ParseNumber(text)
		}
	case 'R':
		raw, err := rawJSON(content)
		if err != nil {
			return nil, err
		}
		return d.json(raw)
	default:
		return d.schema(f, content)
	}
}

// smallMessage is a message with a form of its own, split into its fields. No such message has more than three fields.
type smallMessage struct {
	numbers [4]uint64
	bytes   [4][]byte
	present [4]bool
}

// splitSmall splits a message. wires has the wire types of its fields from number 1 on. The last occurrence of a field wins.
func splitSmall(name string, content []byte, wires ...uint8) (m smallMessage, err error) {
	for len(content) > 0 {
		var f wireField
		if f, content, err = nextField(content); err != nil {
			return m, err
		}
		if f.number == 0 || f.number > uint64(len(wires)) || wires[f.number-1] != f.wire {
			return m, &UnknownFieldError{name, f.number, "is unknown"}
		}
		m.numbers[f.number] = f.value
		m.bytes[f.number] = f.bytes
		m.present[f.number] = true
	}
	return m, nil
}

// appendScalar appends the text of a scalar. Without isText it is null or a number.
func appendScalar(dst []byte, form byte, content []byte) (text []byte, isText bool, err error) {
	switch form {
	case 'T', 'U':
		return appendTime(dst, form, content)
	case 'D':
		m, err := splitSmall("meta/v1.Duration", content, wireVarint)
		return append(dst, time.Duration(m.numbers[1]).String()...), true, err //nolint:gosec // like the generated code
	case 'Q':
		m, err := splitSmall("resource.Quantity", content, wireBytes)
		if err != nil {
			return nil, true, err
		}
		dst, err = appendQuantity(dst, m.bytes[1], m.present[1])
		return dst, true, err
	default:
		m, err := splitSmall("util/intstr.IntOrString", content, wireVarint, wireVarint, wireBytes)
		switch {
		case err != nil:
			return nil, false, err
		case m.numbers[1] == 0:
			return strconv.AppendInt(dst, int64(int32(m.numbers[2])), 10), false, nil //nolint:gosec // like the generated code
		case m.numbers[1] == 1:
			return append(dst, m.bytes[3]...), true, nil
		}
		return nil, false, fmt.Errorf("invalid IntOrString: type %d", m.numbers[1])
	}
}

// zeroTime is time.Time{}.Unix().
const zeroTime = -62135596800

func isZeroTime(content []byte) bool {
	seconds, _, err := timestamp(content)
	return err == nil && seconds == zeroTime
}

// timestamp decodes a metav1.Timestamp. Without content it is the zero time.
func timestamp(content []byte) (seconds int64, nanos int32, err error) {
	if len(content) == 0 {
		return zeroTime, 0, nil
	}
	for len(content) > 0 {
		number := content[0]
		var value uint64
		if value, content, err = varint(content[1:]); err != nil {
			return 0, 0, err
		}
		switch number {
		case 1<<3 | wireVarint:
			seconds = int64(value) //nolint:gosec // like the generated code
		case 2<<3 | wireVarint:
			nanos = int32(value) //nolint:gosec // like the generated code
		default:
			return 0, 0, &UnknownFieldError{"meta/v1.Timestamp", uint64(number >> 3), "is unknown"}
		}
	}
	return seconds, nanos, nil
}

func appendTime(dst []byte, form byte, content []byte) (text []byte, isText bool, err error) {
	seconds, nanos, err := timestamp(content)
	if err != nil {
		return nil, false, err
	}
	at := time.Unix(seconds, 0).UTC()
	layout := time.RFC3339
	if form == 'U' {
		at = at.Add(time.Duration(nanos).Truncate(time.Microsecond))
		layout = metav1.RFC3339Micro
	}
	if at.IsZero() {
		return append(dst, "null"...), false, nil
	}
	return at.AppendFormat(dst, layout), true, nil
}

// appendQuantity appends a quantity in its canonical form, as JSON has it.
func appendQuantity(dst, text []byte, isPresent bool) ([]byte, error) {
	if !isPresent {
		return append(dst, '0'), nil
	}
	if isCanonical(text) {
		return append(dst, text...), nil
	}
	q, err := resource.ParseQuantity(string(text))
	if err != nil {
		return nil, fmt.Errorf("invalid quantity: %w", err)
	}
	return append(dst, q.String()...), nil
}

// isCanonical reports whether a quantity is certainly in its canonical form: an integer of few digits, not divisible by the next
// suffix. With a binary suffix the largest quantity is 1<<63 - 1.
func isCanonical(text []byte) bool {
	const maxDigits = 15
	digits := 0
	n := int64(0)
	for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
		n = 10*n + int64(text[digits]-'0')
		if digits++; digits > maxDigits {
			return false
		}
	}
	if digits == 0 || text[0] == '0' {
		return string(text) == "0"
	}
	switch string(text[digits:]) {
	case "", "m", "k", "M", "G", "T":
		return n%1000 != 0
	case "Ki", "Mi":
		return n%1024 != 0 && n < 1<<43
	case "Gi", "Ti":
		return n%1024 != 0 && n < 1<<23
	}
	return false
}

// rawJSON returns the JSON in a message, or nil for null.
func rawJSON(content []byte) ([]byte, error) {
	m, err := splitSmall("with JSON", content, wireBytes)
	return m.bytes[1], err
}

const whiteSpace = " \t\r\n" // in JSON

func trimmed(raw []byte) []byte { return bytes.Trim(raw, whiteSpace) }

// json decodes JSON within a message. ValueCost has been charged.
func (d *Decoder) json(raw []byte) (v any, err error) {
	raw = trimmed(raw)
	switch {
	case len(raw) == 0:
		return nil, nil
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9': // a Reader reads the byte behind a number, too
		return jsonread.ParseNumber(raw)
	}
	r := jsonread.Borrow(raw)
	defer r.Release()
	if d.interner != nil {
		r.Intern(d.interner)
	}
	r.Limit(d.left, d.exceeded)
	r.BeginPart(d.left)
	if c, _ := r.Peek(); d.checkOnly && c == '{' {
		_, _, err = r.RawObject()
	} else {
		v, err = r.Value()
	}
	if err == nil {
		err = r.End()
	}
	if err != nil {
		return nil, err
	}
	memory, err := r.EndPart()
	if err != nil {
		return nil, err
	}
	return v, d.charge(int(memory))
}

// schema decodes one of the messages of CustomResourceDefinitions that stand for a schema or a different value.
func (d *Decoder) schema(f *field, content []byte) (any, error) {
	s, err := splitSchema(f, content)
	if err != nil {
		return nil, err
	}
	switch {
	case s.schema != nil:
		return d.object(f.message, *s.schema, metav1.TypeMeta{})
	case f.form == 'O':
		return s.allows, nil
	case len(s.items) == 0:
		return nil, nil
	}
	base := len(d.elements)
	for _, item := range s.items {
		var v any
		if f.form == 'S' {
			v, err = d.str(item)
		} else {
			v, err = d.object(f.message, item, metav1.TypeMeta{})
		}
		if err != nil {
			return nil, err
		}
		if !d.checkOnly {
			d.elements = append(d.elements, v)
		}
	}
	return d.popElements(base), d.charge(jsonread.ListCost)
}

// schemaOr is a JSONSchemaPropsOrBool, OrArray or OrStringArray. At most one field is not zero.
type schemaOr struct {
	schema *[]byte
	allows bool
	items  [][]byte
}

func splitSchema(f *field, content []byte) (s schemaOr, err error) {
	schemaNumber := uint64(1)
	if f.form == 'O' {
		schemaNumber = 2
	}
	for len(content) > 0 {
		var part wireField
		if part, content, err = nextField(content); err != nil {
			return s, err
		}
		switch {
		case part.number == schemaNumber && part.wire == wireBytes && s.schema == nil:
			s.schema = &part.bytes
		case f.form == 'O' && part.number == 1 && part.wire == wireVarint:
			s.allows = part.value != 0
		case f.form != 'O' && part.number == 2 && part.wire == wireBytes:
			s.items = append(s.items, part.bytes)
		default:
			return s, &UnknownFieldError{"apiextensions/v1.JSONSchemaPropsOr…", part.number, "is unknown"}
		}
	}
	if len(s.items) > 0 {
		s.schema = nil
	}
	return s, nil
}

// appendFloat appends a number like encoding/json.
func appendFloat(dst []byte, f float64) ([]byte, error) {
	text, err := json.Marshal(f)
	return append(dst, text...), err
}
