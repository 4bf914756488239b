package jsonread

import (
	"encoding/binary"
	"strings"
)

// stringTable has recent short strings. It holds at most as many of maxInterned bytes as it has slots: a string that
// finds the slots that it may be in taken replaces one.
type stringTable struct {
	slots []string
	boxed []any // the same strings as interface values, as objects hold them; nil until one is read
	// packed allocates strings that come one after the other in shared chunks, which live as long as any string in them:
	// good for names, which come again and again, and for what is in one object, but not for the values of many objects,
	// which live for different times.
	packed bool
	chunk  strings.Builder
}

const (
	tableSlots       = 512
	pooledTableSlots = 64 // for the values of one object
	tableWays        = 4  // slots, next to each other, that a string may be in
	maxInterned      = 48
	chunkSize        = 512
)

func newStringTable(slots int, packed bool) *stringTable {
	return &stringTable{slots: make([]string, slots), packed: packed}
}

func (t *stringTable) forget() {
	clear(t.slots)
	clear(t.boxed)
	t.chunk = strings.Builder{}
}

func (t *stringTable) name(b []byte) string {
	if len(b) > maxInterned {
		return string(b)
	}
	at, _ := t.find(b)
	return t.slots[at]
}

func (t *stringTable) value(b []byte) any {
	if len(b) > maxInterned {
		return string(b)
	}
	if t.boxed == nil {
		t.boxed = make([]any, len(t.slots))
	}
	at, found := t.find(b)
	if !found {
		t.boxed[at] = t.slots[at]
	}
	return t.boxed[at]
}

// find returns the slot of b, and puts b there if it is in none.
func (t *stringTable) find(b []byte) (at int, found bool) {
	at = int(stringHash(b) >> 32 * uint64(len(t.slots)-tableWays+1) >> 32) //nolint:gosec // less than there are slots
	for i, s := range t.slots[at:][:tableWays] {
		if s == string(b) && s != "" {
			return at + i, true
		}
		if s == "" {
			at += i
			break
		}
	}
	t.slots[at] = t.newString(b)
	return at, false
}

func (t *stringTable) newString(b []byte) string {
	if !t.packed {
		return string(b)
	}
	if t.chunk.Cap()-t.chunk.Len() < len(b) {
		t.chunk = strings.Builder{}
		t.chunk.Grow(chunkSize)
	}
	start := t.chunk.Len()
	t.chunk.Write(b) // within its capacity: what is there stays where it is
	return t.chunk.String()[start:]
}

// stringHash hashes the length and the ends of b: a collision costs an allocation, no more.
func stringHash(b []byte) uint64 {
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
