package protobuf

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// eachField calls visit with the fields of a checked message, and the range of each value with its length.
func (m *Message) eachField(data []byte, visit func(f *field, start, end int)) {
	m.parsed()
	for at := 0; at < len(data); {
		tag, rest, err := varint(data[at:])
		if err != nil || tag>>3 >= uint64(len(m.fields)) {
			return // never: the message is checked
		}
		f := &m.fields[tag>>3]
		start := len(data) - len(rest)
		if _, _, rest, err = f.content(rest); err != nil {
			return
		}
		at = len(data) - len(rest)
		visit(f, start, at)
	}
}

// Walk decodes the value at the beginning of a path of field names in a checked object. It follows the path through messages, and
// decodes the first different value. done is the number of names of the value's path. found is false for a missing field.
func (d *Decoder) Walk(k Kind, raw []byte, path []string) (v any, done int, found bool, err error) {
	if len(path) == 0 {
		v, err = d.Object(k.Message, raw, k.TypeMeta)
		return v, 0, err == nil, err
	}
	switch {
	case path[0] == "kind" && k.Kind != "":
		return k.Kind, 1, true, nil
	case path[0] == "apiVersion" && k.APIVersion != "":
		return k.APIVersion, 1, true, nil
	}
	d.begin(raw)
	m := k.Message
	for i, name := range path {
		at := m.find(raw, name)
		switch {
		case at.field == nil, !at.isPresent() && at.field.presence != 'd':
			return nil, i + 1, false, nil
		case at.field.isMessage() && i < len(path)-1:
			raw = at.value()
			m = at.field.message
		default:
			v, found, err = d.located(at)
			return v, i + 1, found, err
		}
	}
	return nil, 0, false, nil // never: the last name is decoded
}

// location is a field within a message.
type location struct {
	message    *Message
	field      *field // nil for no field
	raw        []byte // the encoded message
	start, end int    // of the field's occurrences in raw, with their tags; end is 0 for none
}

func (l location) isPresent() bool { return l.end > 0 }

// isOmitted reports whether JSON omits the value of a present field.
func (l location) isOmitted() bool {
	_, rest, _ := varint(l.raw[l.start:l.end]) // valid: the object is checked
	number, content, _, _ := l.field.content(rest)
	return l.field.presence == 'z' && l.field.isOmitted(number, content)
}

// value returns the encoded message at a location.
func (l location) value() []byte {
	if !l.isPresent() {
		return nil
	}
	_, rest, _ := varint(l.raw[l.start:l.end]) // valid: the object is checked
	content, _, _ := delimited(rest)
	return content
}

// isMessage reports whether the field is a single message, whose fields have names in JSON.
func (f *field) isMessage() bool { return f.form == 'm' && f.shape == 0 }

// find returns the location of a name. It searches inlined messages, too.
func (m *Message) find(raw []byte, name string) location {
	if name == "" || name == inlined {
		return location{}
	}
	m.parsed()
	for i := range m.fields {
		switch f := &m.fields[i]; f.name {
		case name:
			return m.locate(raw, f)
		case inlined:
			if at := f.message.find(m.locate(raw, f).value(), name); at.field != nil {
				return at
			}
		}
	}
	return location{}
}

// locate returns the location of a field in a checked message. Its occurrences are adjacent.
func (m *Message) locate(raw []byte, f *field) location {
	at := location{message: m, field: f, raw: raw}
	previousEnd := 0
	m.eachField(raw, func(other *field, _, end int) {
		if other == f {
			if at.end == 0 {
				at.start = previousEnd
			}
			at.end = end
		}
		previousEnd = end
	})
	return at
}

// Without returns a checked message without the field at a path. It returns false if only JSON can be without the field, such as a
// field with a zero value in JSON, or an entry of a map.
func (m *Message) Without(raw []byte, path []string) (data []byte, possible bool) {
	at := m.find(raw, path[0])
	switch {
	case at.field == nil:
		return raw, true
	case at.message != m, at.field.presence == 'n', at.field.presence == 'd' && (len(path) == 1 || !at.isPresent()):
		return nil, false
	case !at.isPresent(), at.isOmitted():
		return raw, true
	case len(path) == 1:
		return slices.Concat(raw[:at.start], raw[at.end:]), true
	case !at.field.isMessage():
		return nil, false
	}
	content, possible := at.field.message.Without(at.value(), path[1:])
	if !possible || len(content) == len(at.value()) {
		return raw, possible
	}
	tag, _, _ := varint(raw[at.start:])
	head := binary.AppendUvarint(binary.AppendUvarint(bytes.Clone(raw[:at.start]), tag), uint64(len(content)))
	return slices.Concat(head, content, raw[at.end:]), true
}

// located decodes the field at a location.
func (d *Decoder) located(at location) (v any, found bool, err error) {
	base := len(d.members)
	if at.isPresent() {
		var seen uint64
		_, err = d.next(at.message, at.raw[at.start:at.end], &seen)
	} else {
		err = d.absent(at.field)
	}
	if err != nil || len(d.members) == base {
		return nil, false, err
	}
	v = d.members[base].value
	clear(d.members[base:])
	d.members = d.members[:base]
	return v, v != nil, nil
}
