// Package limits has the limits of memory that all decoders of the module share. A limit is a number of bytes that decoded
// values may take, since a byte of JSON may decode to 86 bytes.
package limits

import "math"

const (
	// DefaultObject is the limit of one object. It admits every object that a server stores: requests have 3 MiB at most, and
	// a byte of JSON counts 86 bytes at most.
	DefaultObject int64 = 320 << 20
	// DefaultPage is the limit of the objects of one list that are held together.
	DefaultPage int64 = 2 << 30
	// jsonFactor is the number of bytes of memory for which one byte of JSON counts at least.
	jsonFactor = 8
)

// Or returns a limit that a caller chose: 0 means byDefault, and less than 0 none.
func Or(limit, byDefault int64) int64 {
	switch {
	case limit == 0:
		return byDefault
	case limit < 0:
		return math.MaxInt64
	default:
		return limit
	}
}

// JSON returns the length of JSON that is held whole under a limit of memory.
func JSON(memory int64) int64 { return memory / jsonFactor }

// Memory returns the memory for which JSON of that length counts at least.
func Memory(json int64) int64 { return json * jsonFactor }
