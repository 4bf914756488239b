package unstructured

import (
	"encoding/binary"
	"strings"
)

// interned remembers recent short strings, so that "metadata", "Running" or "kube-system" is allocated once and not
// for every object. It holds at most as many strings of internLongest bytes as it has slots: where a string finds the
// slots that it may be in taken by others, it takes the place of one.
type interned struct {
	slots []string
	tags  []uint32 // of the strings' hashes, so that others are told apart without being looked at; 0 for no string
	// together has strings that came one after the other stand in few pieces of memory, which live as long as any of
	// them: good for names, which come again and again, and for what is in one object, but not for the values of many
	// objects, which go different ways.
	together bool
	piece    strings.Builder
}

func newInterned(slots int) *interned {
	return &interned{slots: make([]string, slots), tags: make([]uint32, slots)}
}

// internedValues has them as interface values, which is how objects hold those that are no names.
type internedValues struct {
	interned
	boxed []any
}

func newInternedValues(slots int) *internedValues {
	return &internedValues{interned: *newInterned(slots), boxed: make([]any, slots)}
}

// pieceSize is small because one string that is kept keeps all of it.
const pieceSize = 512

// forget leaves nothing of the strings behind.
func (t *internedValues) forget() {
	clear(t.slots)
	clear(t.boxed)
	clear(t.tags)
	t.piece = strings.Builder{}
}

// text is b as a string that is new.
func (t *interned) text(b []byte) string {
	if !t.together {
		return string(b)
	}
	if t.piece.Cap()-t.piece.Len() < len(b) {
		t.piece = strings.Builder{}
		t.piece.Grow(pieceSize)
	}
	begin := t.piece.Len()
	t.piece.Write(b) // within its capacity, so that what stands there stays
	return t.piece.String()[begin:]
}

const (
	internSlots   = 512 // of a list or watch, and of field names
	internFew     = 64  // of one object, which are forgotten behind it
	internTries   = 4   // so many slots, next to each other, a string may be in
	internLongest = 48
)

// value is b as a string in an interface value.
func (t *internedValues) value(b []byte) any {
	if len(b) > internLongest {
		return string(b)
	}
	at, found := t.find(b)
	if !found {
		t.boxed[at] = t.slots[at]
	}
	return t.boxed[at]
}

// name is b as a string.
func (t *interned) name(b []byte) string {
	if len(b) > internLongest {
		return string(b)
	}
	at, _ := t.find(b)
	return t.slots[at]
}

// find is the slot of b, which is new there if it was not found.
func (t *interned) find(b []byte) (at int, found bool) {
	hash := internHash(b)
	// The upper half scaled to the places where a string can begin, and the lower half, which is never 0.
	first := int(hash >> 32 * uint64(len(t.slots)-internTries+1) >> 32) //nolint:gosec // less than there are slots
	tag := uint32(hash) | 1                                             //nolint:gosec // a half
	at = first
	for i, is := range t.tags[first:][:internTries] {
		if is == tag && t.slots[first+i] == string(b) {
			return first + i, true
		}
		if is == 0 {
			at = first + i
			break
		}
	}
	t.slots[at], t.tags[at] = t.text(b), tag
	return at, false
}

// internHash looks at the ends of b only: what it takes for equal costs an
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
	return x * 0xD6E8FEB86659FD93
}
