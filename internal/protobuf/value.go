package protobuf

import (
	"encoding/base64"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/anykind/anykind/internal/jsonread"
)

// value decodes and charges a value. A list's item and a map's value have the field's form, too.
func (d *Decoder) value(f *field, number uint64, content []byte) (any, error) {
	switch f.form {
	case 's':
		return d.str(content)
	case 'm':
		if d.interner == nil {
			return d.object(f.message, content, f.typeMeta)
		}
		return d.part(f, 0, content, func() (any, error) { return d.object(f.message, content, f.typeMeta) })
	}
	if err := d.charge(jsonread.ValueCost); err != nil {
		return nil, err
	}
	switch f.form {
	case 'b':
		return number != 0, nil
	case 'i':
		return int64(int32(number)), nil //nolint:gosec // like the generated code
	case 'l':
		return int64(number), nil //nolint:gosec // like the generated code
	case 'f':
		return decodeFloat(number)
	case 'y':
		return d.base64(content)
	case '*', 'R', 'O', 'A', 'S':
		if d.interner == nil {
			return d.composite(f, content)
		}
		return d.part(f, 0, content, func() (any, error) { return d.composite(f, content) })
	default:
		return d.special(f, content)
	}
}

// composite decodes a message that may be a list or a map.
func (d *Decoder) composite(f *field, content []byte) (any, error) {
	if f.form == '*' {
		return d.stringList(content)
	}
	return d.special(f, content)
}

// str returns a string. It replaces invalid UTF-8 like encoding/json.
func (d *Decoder) str(content []byte) (any, error) {
	if err := d.charge(jsonread.ValueCost + len(content)); err != nil || d.checkOnly {
		return nil, err
	}
	return d.values.Value(validUTF8(content)), nil
}

func validUTF8(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	var b strings.Builder
	for _, c := range string(text) {
		b.WriteRune(c)
	}
	return []byte(b.String())
}

func (d *Decoder) base64(content []byte) (any, error) {
	if err := d.charge(base64.StdEncoding.EncodedLen(len(content))); err != nil || d.checkOnly {
		return nil, err
	}
	return base64.StdEncoding.EncodeToString(content), nil
}

// stringList decodes a message with a list of strings as its only field.
func (d *Decoder) stringList(content []byte) (any, error) {
	base := len(d.elements)
	for len(content) > 0 {
		f, rest, err := nextField(content)
		if err != nil {
			return nil, err
		}
		if f.number != 1 || f.wire != wireBytes {
			return nil, &UnknownFieldError{"of a list of strings", f.number, "is unknown"}
		}
		v, err := d.str(f.bytes)
		if err != nil {
			return nil, err
		}
		if !d.checkOnly {
			d.elements = append(d.elements, v)
		}
		content = rest
	}
	return d.popElements(base), d.charge(jsonread.ListCost)
}

// decodeFloat decodes a double. JSON writes an integer without a fraction, which decodes as int64.
func decodeFloat(number uint64) (any, error) {
	text, err := appendFloat(nil, math.Float64frombits(number))
	if err != nil {
		return nil, err
	}
	return jsonread.ParseNumber(text)
}
