package jsonread

import (
	"math"

	"github.com/anykind/anykind/internal/limits"
)

// Upper bounds of the memory that is allocated for values, in bytes. A Reader and a scanner charge the same for the same JSON.
// The worst case is {"":{"":…, 432 bytes for 5 bytes of JSON.
const (
	valueCost       = 64  // in a list and on its stack, with a number of its own or the header of a string
	memberCost      = 32  // more in a map; also the length of the name
	objectCost      = 48  // of a map
	firstMemberCost = 288 // of a map's first 8 slots
	listCost        = 24
)

// Limit bounds the memory of the values that are read, and the JSON that is held at a time; exceeded is the error. The
// default is no limit.
func (r *Reader) Limit(memory int64, exceeded error) {
	r.left = memory
	r.maxHeld = limits.JSON(memory)
	r.exceeded = exceeded
}

// part is a part of the input with a limit of its own.
type part struct{ start, limit int64 }

// BeginPart sets the memory that the values up to EndPart may take. The limit of Limit remains that of tokens and raw objects.
func (r *Reader) BeginPart(limit int64) {
	r.part = part{r.Offset(), limit}
	r.left = limit
}

// EndPart returns the memory that counts since BeginPart, and the error if it exceeds the limit.
func (r *Reader) EndPart() (memory int64, err error) {
	memory = max(r.part.limit-r.left, limits.Memory(r.Offset()-r.part.start))
	if memory > r.part.limit {
		err = r.exceeded
	}
	return memory, err
}

// Charge counts memory that the caller allocates for what it reads.
func (r *Reader) Charge(memory int64) error {
	r.left -= memory
	return r.checkLeft()
}

func (r *Reader) checkLeft() error {
	if r.left < 0 {
		return r.exceeded
	}
	return nil
}

func (r *Reader) unlimit() {
	r.left = math.MaxInt64
	r.maxHeld = math.MaxInt64
	r.exceeded = nil
}

// Shrink returns to a buffer of one chunk and to small stacks after a large object.
func (r *Reader) Shrink(chunk int) {
	r.buffer.Shrink(chunk)
	r.members = shrunk(r.members, chunk)
	r.elements = shrunk(r.elements, chunk)
	r.scratch = shrunk(r.scratch[:0], maxChunksKept*chunk)
}

// shrunk returns s, which is empty, or nil if it has more capacity.
func shrunk[T any](s []T, capacity int) []T {
	if cap(s) > capacity {
		return nil
	}
	return s
}
