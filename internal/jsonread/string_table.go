package jsonread

import (
	"encoding/binary"
	"slices"
	"strings"
)

// StringTable is a table of recent short strings: at most maxSlots strings of at most maxInterned bytes each. A string has
// tableWays possible slots. If all are taken, the table grows, or a new string replaces the first.
type StringTable struct {
	slots    []string
	maxSlots int
	boxed    []any // the same strings as interface values, for use in objects; nil before the first value
	// packed allocates consecutive strings in shared chunks. A chunk lives as long as any of its strings. Chunks suit the values
	// of one object, and names because they recur. They do not suit the values of many objects with different lifetimes.
	packed bool
	chunk  strings.Builder
}

// Numbers of slots.
const (
	firstTableSlots  = 32 // of an empty table
	TableSlots       = 512
	PooledTableSlots = 64 // for the values of one object
	tableWays        = 4  // adjacent slots for a string
	maxInterned      = 48
	chunkSize        = 512
)

// NewStringTable returns an empty table that grows to maxSlots.
func NewStringTable(maxSlots int, packed bool) *StringTable {
	return &StringTable{slots: make([]string, min(firstTableSlots, maxSlots)), maxSlots: maxSlots, packed: packed}
}

// shrink drops all strings and the memory of the table.
func (t *StringTable) shrink() {
	if len(t.slots) > firstTableSlots {
		*t = *NewStringTable(t.maxSlots, t.packed)
	}
}

// Forget drops all strings.
func (t *StringTable) Forget() {
	clear(t.slots)
	clear(t.boxed)
	t.chunk = strings.Builder{}
}

// Name returns b as a string.
func (t *StringTable) Name(b []byte) string {
	if len(b) > maxInterned {
		return string(b)
	}
	at, _ := t.find(b)
	return t.slots[at]
}

// Value returns b as a string in an interface value.
func (t *StringTable) Value(b []byte) any {
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

// find returns the slot of b. If b has no slot, find stores it.
func (t *StringTable) find(b []byte) (at int, found bool) {
	at = t.first(stringHash(b))
	for i, s := range t.slots[at:][:tableWays] {
		if s == string(b) && s != "" {
			return at + i, true
		}
		if s == "" {
			t.slots[at+i] = t.newString(b)
			return at + i, false
		}
	}
	if len(t.slots) < t.maxSlots {
		t.grow()
		return t.find(b)
	}
	t.slots[at] = t.newString(b)
	return at, false
}

// first returns the first possible slot of a string with a hash.
func (t *StringTable) first(hash uint64) int {
	return int(hash >> 32 * uint64(len(t.slots)-tableWays+1) >> 32) //nolint:gosec // less than there are slots
}

// grow doubles the slots.
func (t *StringTable) grow() {
	slots, boxed := t.slots, t.boxed
	t.slots = make([]string, min(2*len(slots), t.maxSlots))
	if boxed != nil {
		t.boxed = make([]any, len(t.slots))
	}
	for i, s := range slots {
		if s == "" {
			continue
		}
		at := t.first(stringHash([]byte(s)))
		if free := slices.Index(t.slots[at:][:tableWays], ""); free > 0 {
			at += free
		}
		t.slots[at] = s
		if boxed != nil {
			t.boxed[at] = boxed[i]
		}
	}
}

func (t *StringTable) newString(b []byte) string {
	if !t.packed {
		return string(b)
	}
	if t.chunk.Cap()-t.chunk.Len() < len(b) {
		t.chunk = strings.Builder{}
		t.chunk.Grow(chunkSize)
	}
	start := t.chunk.Len()
	t.chunk.Write(b) // within the capacity: existing strings do not move
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
