package protobuf

import (
	"math/bits"

	"github.com/anykind/anykind/internal/jsonread"
)

// fields decodes a message's fields as members of the innermost object.
func (d *Decoder) fields(m *Message, data []byte) error {
	if d.checkOnly {
		return d.checkFields(m, data)
	}
	var seen uint64
	for len(data) > 0 {
		var err error
		if data, err = d.next(m, data, &seen); err != nil {
			return err
		}
	}
	return d.absentFields(m, seen)
}

// absentFields adds the fields of JSON that the message does not have.
func (d *Decoder) absentFields(m *Message, seen uint64) error {
	for absent := m.alwaysPresent &^ seen; absent != 0; absent &= absent - 1 {
		if err := d.absent(&m.fields[bits.TrailingZeros64(absent)]); err != nil {
			return err
		}
	}
	return nil
}

// next decodes the first field in data, with all items of a list and all entries of a map. It returns the rest.
func (d *Decoder) next(m *Message, data []byte, seen *uint64) (rest []byte, err error) {
	tag, rest, err := varint(data)
	if err != nil {
		return nil, err
	}
	f, err := m.field(tag, seen)
	if err != nil {
		return nil, err
	}
	if f.shape == 0 {
		return d.single(f, rest)
	}
	var v any
	if d.interner != nil {
		v, rest, err = d.internedParts(m, f, tag, rest)
	} else {
		v, rest, err = d.newParts(m, f, tag, rest)
	}
	if err == nil {
		d.members = append(d.members, member{f.name, v})
	}
	return rest, err
}

// newParts decodes the list or map of a field.
func (d *Decoder) newParts(m *Message, f *field, tag uint64, data []byte) (v any, rest []byte, err error) {
	if f.shape == '[' {
		return d.list(f, tag, data)
	}
	return d.entries(m, f, tag, data)
}

// field returns the field with a tag, and adds it to the fields seen in a message.
func (m *Message) field(tag uint64, seen *uint64) (*field, error) {
	number := tag >> 3
	if number >= uint64(len(m.fields)) || m.fields[number].name == "" {
		return nil, &UnknownFieldError{m.name, number, "is unknown"}
	}
	f := &m.fields[number]
	if uint8(tag&7) != f.wire {
		return nil, &UnknownFieldError{m.name, number, "has an unexpected wire type"}
	}
	if *seen&(1<<number) != 0 {
		return nil, &UnknownFieldError{m.name, number, "occurs twice"}
	}
	*seen |= 1 << number
	return f, nil
}

// content splits data, behind a tag, into the field's value and the rest.
func (f *field) content(data []byte) (number uint64, content, rest []byte, err error) {
	switch f.wire {
	case wireBytes:
		content, rest, err = delimited(data)
	case wireVarint:
		number, rest, err = varint(data)
	default:
		if len(data) < 8 {
			return 0, nil, nil, errTruncated
		}
		for i, b := range data[:8] {
			number |= uint64(b) << (8 * i)
		}
		rest = data[8:]
	}
	return number, content, rest, err
}

// isOmitted reports whether JSON omits a value with presence z: the zero value of its Go type. No further forms have this presence.
func (f *field) isOmitted(number uint64, content []byte) bool {
	switch f.form {
	case 'T':
		return isZeroTime(content)
	case 's', 'y':
		return len(content) == 0
	case 'i':
		return uint32(number) == 0 //nolint:gosec // like the generated code
	default:
		return number == 0
	}
}

func (d *Decoder) single(f *field, data []byte) (rest []byte, err error) {
	number, content, rest, err := f.content(data)
	if err != nil {
		return nil, err
	}
	if f.name == inlined {
		return rest, d.inline(f, content)
	}
	if f.presence == 'z' && f.isOmitted(number, content) {
		return rest, nil
	}
	d.member(f.name)
	v, err := d.value(f, number, content)
	if err != nil {
		return nil, err
	}
	if d.interner != nil && f.name == "uid" && d.node.IsMetadata() {
		d.interner.SetUID(string(content))
	}
	d.add(f.name, v, 0)
	return rest, nil
}

func (d *Decoder) inline(f *field, data []byte) error {
	if d.depth++; d.depth > jsonread.MaxDepth {
		return errDepth
	}
	err := d.fields(f.message.parsed(), data)
	d.depth--
	return err
}

// nextItem returns the data behind the tag if data begins with the same tag. The items of a list and the entries of a map are
// adjacent.
func nextItem(data []byte, tag uint64) (rest []byte, found bool) {
	if len(data) == 0 {
		return nil, false
	}
	if data[0] < 0x80 {
		return data[1:], uint64(data[0]) == tag
	}
	next, rest, err := varint(data)
	return rest, err == nil && next == tag
}

func (d *Decoder) list(f *field, tag uint64, data []byte) (v any, rest []byte, err error) {
	d.left -= f.memory
	base := len(d.elements)
	for found := true; found; data, found = nextItem(rest, tag) {
		number, content, after, err := f.content(data)
		if err != nil {
			return nil, nil, err
		}
		d.element(len(d.elements) - base)
		element, err := d.value(f, number, content)
		if err != nil {
			return nil, nil, err
		}
		d.elements = append(d.elements, element)
		rest = after
	}
	return d.popElements(base), rest, nil
}

// popElements returns the innermost list, whose elements begin at base.
func (d *Decoder) popElements(base int) any {
	if d.checkOnly {
		return nil
	}
	read := d.elements[base:]
	list := make([]any, len(read))
	copy(list, read)
	clear(read)
	d.elements = d.elements[:base]
	return list
}

func (d *Decoder) entries(m *Message, f *field, tag uint64, data []byte) (v any, rest []byte, err error) {
	d.left -= f.memory
	base := len(d.members)
	for found := true; found; data, found = nextItem(rest, tag) {
		var entry []byte
		if entry, rest, err = delimited(data); err != nil {
			return nil, nil, err
		}
		key, content, err := splitEntry(m, f, entry)
		if err != nil {
			return nil, nil, err
		}
		name := d.names.Name(validUTF8(key))
		d.member(name)
		value, err := d.value(f, 0, content)
		if err != nil {
			return nil, nil, err
		}
		d.add(name, value, 0)
	}
	return d.popMembers(base), rest, nil
}

// splitEntry returns key and value of a map's entry.
func splitEntry(m *Message, f *field, entry []byte) (key, content []byte, err error) {
	for len(entry) > 0 {
		tag := entry[0]
		if tag != 1<<3|wireBytes && tag != 2<<3|wireBytes {
			return nil, nil, &UnknownFieldError{m.name, f.number, "has an entry with unknown fields"}
		}
		var part []byte
		if part, entry, err = delimited(entry[1:]); err != nil {
			return nil, nil, err
		}
		if tag == 1<<3|wireBytes {
			key = part
		} else {
			content = part
		}
	}
	return key, content, nil
}

// absent adds a field that is always present in JSON.
func (d *Decoder) absent(f *field) error {
	switch {
	case f.presence == 'n':
		d.add(f.name, nil, jsonread.ValueCost)
	case f.name == inlined:
		return d.inline(f, nil)
	default:
		d.member(f.name)
		v, err := d.value(f, 0, nil)
		if err != nil {
			return err
		}
		d.add(f.name, v, 0)
	}
	return nil
}
