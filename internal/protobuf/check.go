package protobuf

import "github.com/anykind/anykind/internal/jsonread"

// checkFields is fields for Check. It makes no values, and its loop has no calls for most fields: it is most of the cost of a lazy
// object.
func (d *Decoder) checkFields(m *Message, data []byte) (err error) {
	var seen uint64
	var previous uint64 // tag, 0 for none
	for len(data) > 0 {
		tag := uint64(data[0])
		if tag < 0x80 {
			data = data[1:]
		} else if tag, data, err = varint(data); err != nil {
			return err
		}
		var f *field
		if tag != 0 && tag == previous && m.fields[tag>>3].shape != 0 {
			f = &m.fields[tag>>3] // the next item or entry
		} else {
			if f, err = m.field(tag, &seen); err != nil {
				return err
			}
			previous = tag
			d.left -= f.memory
		}
		var number uint64
		var content []byte
		if f.wire == wireBytes && len(data) > 0 && int(data[0]) < len(data) && data[0] < 0x80 {
			end := 1 + int(data[0])
			content = data[1:end:end]
			data = data[end:]
		} else if number, content, data, err = f.content(data); err != nil {
			return err
		}
		if err := d.checkField(m, f, number, content); err != nil {
			return err
		}
	}
	return d.absentFields(m, seen)
}

// checkField validates a field, an item or an entry.
func (d *Decoder) checkField(m *Message, f *field, number uint64, content []byte) (err error) {
	switch f.shape {
	case '{':
		var key []byte
		if key, content, err = splitEntry(m, f, content); err != nil {
			return err
		}
		d.left -= int64(jsonread.MemberCost + len(validUTF8(key)))
	case 0:
		if f.name == inlined {
			return d.inline(f, content)
		}
		if f.presence == 'z' && f.isOmitted(number, content) {
			return nil
		}
		d.left -= int64(jsonread.MemberCost + len(f.name))
	}
	if f.form == 's' {
		d.left -= int64(jsonread.ValueCost + len(content))
		return nil
	}
	_, err = d.value(f, number, content)
	return err
}
