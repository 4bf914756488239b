package discovery

import (
	"bytes"
	"errors"

	"github.com/anykind/anykind/internal/limits"
)

// Upper bounds of the memory for decoded JSON values, in bytes. Growing slices hold twice their elements, and a version's
// resources are copied.
const (
	resourceSize    = 1 << 10
	subresourceSize = 512
	versionSize     = 512
	groupSize       = 512
	failureSize     = 1 << 10 // of an invalid part
	elementSize     = 1 << 10 // of a list in any other document, such as a PartialObjectMetadata
)

var errTooLarge = errors.New("the response needs more memory than its limit (MemoryLimits.Page of the connection)")

// memory returns the memory limit for a decoded document.
func (c *Client) memory() int64 { return limits.Or(c.conn.MemoryLimits().Page, limits.DefaultPage) }

// checkMemory rejects a document if decoding it to a Go type without large maps may exceed the memory limit.
func checkMemory(body []byte, memory int64) error {
	if int64(bytes.Count(body, []byte(",")))*elementSize > memory {
		return errTooLarge
	}
	return nil
}
