// Package packed compresses the objects of caches: an object takes a tenth of its JSON or so, in the heap.
//
//	pods := cache.New(dynamic.As[unstructured.Lazy](resource), &cache.Options[unstructured.Lazy]{Codec: packed.New[unstructured.Lazy]()})
//
// # Idea
//
// Objects of one kind repeat field names, values and whole subtrees. Each object is compressed alone as an S2 block, with a
// dictionary: the JSON of some other objects of the cache, which it refers to wherever it repeats them. S2 needs no state but
// the dictionary, and a few microseconds.
//
// # Invariants
//
// An object belongs to the dictionary that it was packed with, and keeps it alive: a new dictionary affects new objects only,
// and readers never wait. An object that does not become smaller, as random data, is kept as it is; so are all objects of a
// cache that is smaller than a dictionary.
//
// # Memory
//
// A cache has its first dictionary once it has 16 objects and as much JSON as the dictionary will take: at most 64 KiB, and a
// table of 32 KiB. As objects change their shape there are at most 8 dictionaries, of which the last has a table. A cache keeps
// 8 recently used objects unpacked, and at most 16 parts of 8 KiB for its next dictionary. The goroutine that packs needs
// 128 KiB of stack, which the garbage collector takes back while it waits.
package packed

import (
	"encoding/json"
	"sync/atomic"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/unstructured"
)

// Codec is a cache.Codec for objects of type T, which must be convertible to JSON and back without a loss. It is safe for
// concurrent use, and for several caches.
type Codec[T any] struct {
	encode func(*T) ([]byte, error)
	decode func([]byte) (*T, error) // keeps nothing of the data
	isJSON bool                     // in memory: encode takes nothing
}

// New returns a codec. *unstructured.Lazy, whose form in memory is JSON, costs the least time; *unstructured.Object and
// structs are encoded and decoded as well.
func New[T any]() *Codec[T] {
	c := &Codec[T]{
		encode: func(obj *T) ([]byte, error) { return json.Marshal(obj) },
		decode: func(data []byte) (*T, error) {
			obj := new(T)
			return obj, json.Unmarshal(data, obj)
		},
	}
	switch c := any(c).(type) {
	case *Codec[unstructured.Lazy]:
		c.encode, c.isJSON = func(obj *unstructured.Lazy) ([]byte, error) { return obj.JSON(), nil }, true
		c.decode = unstructured.DecodeLazy
	case *Codec[unstructured.Object]:
		c.encode, c.decode = unstructured.Encode, unstructured.Decode
	}
	return c
}

// NewPacker returns the packer of one cache.
func (c *Codec[T]) NewPacker() cache.Packer[T] {
	return &packer[T]{codec: c, shared: &shared[T]{decode: c.decode}, learner: learner{alive: new(atomic.Int32)}}
}
