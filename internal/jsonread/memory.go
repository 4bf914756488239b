package jsonread

import (
	"math"

	"github.com/anykind/anykind/internal/limits"
)

// These constants are upper bounds of the memory allocated for values, in bytes. A Reader and a scanner charge the same for the
// same JSON. The worst case is {"":{"":…, 432 bytes for 5 bytes of JSON.
const (
	ValueCost       = 64  // each value: list element and stack slot, with a boxed number or string header
	MemberCost      = 32  // each map member, in addition to ValueCost and the name's length
	ObjectCost      = 48  // each map
	FirstMemberCost = 288 // a map's first 8 slots
	ListCost        = 24  // each list
)

// Limit bounds the memory of decoded values, in bytes. It also bounds the JSON held at a time to limits.JSON(memory). A read
// beyond a limit returns exceeded. The default is no limit.
func (r *Reader) Limit(memory int64, exceeded error) {
	r.left = memory
	r.maxHeld = limits.JSON(memory)
	r.exceeded = exceeded
}

// part is a part of the input with its own limit.
type part struct{ start, limit int64 }

// BeginPart bounds the memory of the values read before EndPart, in bytes. The JSON held at a time stays bounded by Limit.
func (r *Reader) BeginPart(limit int64) {
	r.part = part{r.Offset(), limit}
	r.left = limit
}

// EndPart returns the memory of the part: max(charged memory, limits.Memory(length of its JSON)). If the memory exceeds the
// part's limit, EndPart returns the error set by Limit.
func (r *Reader) EndPart() (memory int64, err error) {
	memory = max(r.part.limit-r.left, limits.Memory(r.Offset()-r.part.start))
	if memory > r.part.limit {
		err = r.exceeded
	}
	return memory, err
}

// Charge counts memory allocated by the caller. Beyond the limit it returns the error set by Limit.
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

// Shrink shrinks the buffer and drops the large stacks after a large object. chunk is the new size of the buffer, in bytes.
func (r *Reader) Shrink(chunk int) { r.shrink(chunk, maxChunksKept*chunk) }

// ShrinkIdle is Shrink after any object, before a pause of the input.
func (r *Reader) ShrinkIdle(chunk int) {
	r.shrink(chunk, chunk)
	r.names.shrink()
	r.values.shrink()
}

func (r *Reader) shrink(chunk, kept int) {
	r.buffer.shrink(chunk, kept)
	r.members = shrunk(r.members, kept/maxChunksKept)
	r.elements = shrunk(r.elements, kept/maxChunksKept)
	r.scratch = shrunk(r.scratch[:0], kept)
}

// shrunk returns the empty slice s, or nil if its capacity is larger than capacity.
func shrunk[T any](s []T, capacity int) []T {
	if cap(s) > capacity {
		return nil
	}
	return s
}
