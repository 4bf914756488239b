package protobuf

import (
	"encoding/binary"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/limits"
)

// Intern makes [Decoder.Object] reuse equal maps and lists of other objects and of the previous version of an object: see package
// jsonread. [jsonread.Interner.NewObject] must follow each Object without an error. A part that is reused counts as much memory as
// JSON of its length, since it is in memory already.
func (d *Decoder) Intern(interner *jsonread.Interner) { d.interner = interner }

// member sets the node of a member's value.
func (d *Decoder) member(name string) {
	if d.interner != nil {
		d.child = d.interner.Member(d.node, name)
	}
}

// element sets the node of a list's element.
func (d *Decoder) element(i int) {
	if d.interner != nil {
		d.child = d.interner.Element(d.node, i)
	}
}

// internedParts returns the list or map of a field, whose first item or entry begins at data, behind its tag.
func (d *Decoder) internedParts(m *Message, f *field, tag uint64, data []byte) (v any, rest []byte, err error) {
	for found, next := true, data; found; next, found = nextItem(rest, tag) {
		if _, _, rest, err = f.content(next); err != nil {
			return nil, nil, err
		}
	}
	d.member(f.name)
	v, err = d.part(f, f.shape, data[:len(data)-len(rest)], func() (v any, err error) {
		v, _, err = d.newParts(m, f, tag, data)
		return v, err
	})
	return v, rest, err
}

// part returns the map or list at the child node, a message or, with a shape, the items or entries of a field. decode makes a new one.
func (d *Decoder) part(f *field, shape byte, text []byte, decode func() (any, error)) (any, error) {
	parent := d.node
	d.node = d.child
	defer func() { d.node = parent }()
	if d.node.IsMetadata() {
		return decode()
	}
	d.text = append(binary.BigEndian.AppendUint32(append(d.text[:0], 0, shape), f.id), text...)
	v, found, err := d.interner.Part(d.node, f.name, d.text, decode)
	if err == nil && found {
		err = d.charge(int(limits.Memory(int64(len(text)))))
	}
	return v, err
}
