package unstructured

import "encoding/binary"

// interned remembers recent short strings, so that "metadata", "Running" or "kube-system" is allocated once and not
// for every object. It holds at most internSlots strings of internLongest bytes: a string takes the place of another
// that falls on the same pair of slots. The zero value is ready.
type interned struct {
	slots []internSlot
}

type internSlot struct {
	text  string
	boxed any // text as objects hold it; nil if it has been a name only
}

const (
	internSlots   = 512
	internLongest = 48
)

// value is b as a string in an interface value.
func (t *interned) value(b []byte) any {
	if len(b) > internLongest {
		return string(b)
	}
	slot := t.slot(b)
	if slot.boxed == nil {
		slot.boxed = slot.text
	}
	return slot.boxed
}

// name is b as a string.
func (t *interned) name(b []byte) string {
	if len(b) > internLongest {
		return string(b)
	}
	return t.slot(b).text
}

// slot is where b is, or is put.
func (t *interned) slot(b []byte) *internSlot {
	if t.slots == nil {
		t.slots = make([]internSlot, internSlots)
	}
	pair := t.slots[internHash(b)*2:][:2]
	if pair[0].text == string(b) {
		return &pair[0]
	}
	if pair[1].text == string(b) {
		return &pair[1]
	}
	pair[0], pair[1] = internSlot{text: string(b)}, pair[0]
	return &pair[0]
}

// internHash is the number of a pair of slots. It looks at the ends of b only: what it takes for equal costs an
// allocation, no more.
func internHash(b []byte) uint64 {
	x := uint64(len(b))
	switch n := len(b); {
	case n >= 8:
		x += binary.LittleEndian.Uint64(b) ^ binary.LittleEndian.Uint64(b[n-8:])*0x9E3779B97F4A7C15
	case n >= 4:
		x += uint64(binary.LittleEndian.Uint32(b)) ^ uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32
	case n > 0:
		x += uint64(b[0])<<8 | uint64(b[n/2])<<16 | uint64(b[n-1])<<24
	}
	return x * 0xD6E8FEB86659FD93 >> 56
}
