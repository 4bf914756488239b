package unstructured

import (
	"encoding/binary"
	"strings"
)

// interned remembers recent short strings, so that "metadata", "Running" or "kube-system" is allocated once and not
// for every object. It holds at most as many strings of internLongest bytes as it has slots: where a string finds the
// slots that it may be in taken by others, it takes the place of one.
type interned struct {
	slots []any    // strings, kept as interface values because that is how objects hold them
	tags  []uint32 // of the strings' hashes, so that others are told apart without being looked at; 0 for no string
	// together has the strings of one object stand in few pieces of memory, which live as long as any of them: those
	// of a list, whose objects go different ways, stand each for itself.
	together bool
	piece    strings.Builder
}

func newInterned(slots int) *interned {
	return &interned{slots: make([]any, slots), tags: make([]uint32, slots)}
}

// pieceSize is small because one string that is kept keeps all of it.
const pieceSize = 512

// forget leaves nothing of the strings behind.
func (t *interned) forget() {
	clear(t.slots)
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
func (t *interned) value(b []byte) any {
	if len(b) > internLongest {
		return string(b)
	}
	hash := internHash(b)
	// The upper half scaled to the places where a string can begin, and the lower half, which is never 0.
	first := hash >> 32 * uint64(len(t.slots)-internTries+1) >> 32
	slots, tags, tag := t.slots[first:][:internTries], t.tags[first:][:internTries], uint32(hash)|1
	free := 0
	for i, is := range tags {
		if is == tag {
			if s, _ := slots[i].(string); s == string(b) {
				return slots[i]
			}
		}
		if is == 0 {
			free = i
			break
		}
	}
	slots[free], tags[free] = t.text(b), tag
	return slots[free]
}

// name is b as a string.
func (t *interned) name(b []byte) string {
	s, _ := t.value(b).(string)
	return s
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
