// Package limits has the memory limits of all decoders of the module. A limit bounds the memory of decoded values, in bytes,
// since a byte of JSON may decode to 86 bytes.
package limits

import "math"

const (
	// DefaultObject limits a single object. It admits every object stored by a server: a request has at most 3 MiB, and a byte of
	// JSON counts as at most 86 bytes.
	DefaultObject int64 = 320 << 20
	// DefaultPage limits the objects of a list held together.
	DefaultPage int64 = 2 << 30
	// jsonFactor is the minimum number of bytes of memory counted for a byte of JSON.
	jsonFactor = 8
)

// Or returns a limit chosen by a caller: 0 means byDefault, and less than 0 no limit.
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

// JSON returns the maximum length of JSON held whole under a memory limit.
func JSON(memory int64) int64 { return memory / jsonFactor }

// Memory returns the minimum memory counted for JSON of this length.
func Memory(json int64) int64 { return json * jsonFactor }
