package packed

import (
	"bytes"
	"sync/atomic"

	"github.com/anykind/anykind/cache"
)

const (
	// maxRatio is the size, relative to its JSON, above which an object is kept as JSON.
	maxRatio = 0.9
	// maxPacked is the size of JSON above which an object is kept as JSON: the API server's limit is near it.
	maxPacked = 8 << 20
)

// packer packs the objects of one cache.
type packer[T any] struct {
	codec   *Codec[T]
	shared  *shared[T]
	learner learner
	slots   uint32
}

// Pack returns the packed form of an object, nil if it has no JSON.
func (p *packer[T]) Pack(obj *T) cache.Packed[T] {
	data, err := p.codec.encode(obj)
	if err != nil {
		return nil
	}
	p.slots++
	packed := &object[T]{shared: p.shared, size: uint32(min(len(data), maxPacked+1)), slot: p.slots % recentObjects}
	if len(data) <= maxPacked {
		if dictionary := p.learner.next(); dictionary != nil {
			if compressed := dictionary.compress(data); float64(len(compressed)) <= maxRatio*float64(len(data)) {
				packed.dictionary, packed.data = dictionary, compressed
			}
		}
		p.learner.observe(data, len(packed.data))
	}
	if packed.data == nil {
		packed.data = bytes.Clone(data)
	}
	p.shared.remember(packed, obj)
	return packed
}

// object is one packed object.
type object[T any] struct {
	shared     *shared[T]
	dictionary *dictionary // nil: data is JSON
	data       []byte
	size, slot uint32 // size of the JSON; place among the recent objects
}

// Unpack returns the object.
func (o *object[T]) Unpack() (*T, error) {
	if obj := o.shared.recall(o); obj != nil {
		return obj, nil
	}
	data := o.data
	if o.dictionary != nil {
		var err error
		if data, err = o.dictionary.decompress(o.data, int(o.size)); err != nil {
			return nil, err
		}
	}
	obj, err := o.shared.decode(data)
	if err != nil {
		return nil, err
	}
	o.shared.remember(o, obj)
	return obj, nil
}

// recentObjects is the number of unpacked objects that a cache keeps.
const recentObjects = 32

// shared is the state that the packed objects of one cache have in common.
type shared[T any] struct {
	decode func([]byte) (*T, error)
	recent [recentObjects]atomic.Pointer[recentObject[T]]
}

// recentObject is an unpacked object that was written or read a short time ago.
type recentObject[T any] struct {
	packed   *object[T]
	unpacked *T
}

func (s *shared[T]) remember(packed *object[T], unpacked *T) {
	s.recent[packed.slot].Store(&recentObject[T]{packed, unpacked})
}

// recall returns a recent object, nil if it is not.
func (s *shared[T]) recall(packed *object[T]) *T {
	if recent := s.recent[packed.slot].Load(); recent != nil && recent.packed == packed {
		return recent.unpacked
	}
	return nil
}
