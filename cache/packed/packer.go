package packed

import (
	"bytes"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/cache"
)

const (
	// maxRatio and minSaved: an object is packed only if packed <= maxRatio * len(JSON) and packed + minSaved <= len(JSON).
	// minSaved covers the overhead of a packed object.
	maxRatio = 0.9
	minSaved = 256
	// maxPacked: larger JSON, in bytes, is stored unpacked. API servers accept objects of up to 3 MiB.
	maxPacked = 8 << 20
)

type packer[T any] struct {
	encode func(*T) ([]byte, error)
	isJSON bool // the in-memory form is JSON: encode is free
	shared *shared[T]

	mu      sync.Mutex // guards the fields below
	learner learner
	slots   uint32
}

// Pack returns nil if packing saves nothing or the object has no JSON form. An incompressible object is packed as plain JSON
// unless its in-memory form is already JSON (Lazy).
func (p *packer[T]) Pack(obj *T) cache.Packed[T] {
	data, err := p.encode(obj)
	if err != nil || len(data) > maxPacked {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	dictionary := p.learner.next()
	if dictionary == nil {
		dictionary = p.learner.collect(uidOf(obj), data)
	}
	if dictionary != nil {
		compressed := dictionary.compress(data)
		if float64(len(compressed)) <= maxRatio*float64(len(data)) && len(compressed)+minSaved <= len(data) {
			p.learner.observe(data, len(compressed))
			return p.packed(obj, dictionary, compressed, len(data))
		}
		p.learner.observe(data, 0)
	}
	if p.isJSON {
		return nil
	}
	return p.packed(obj, nil, bytes.Clone(data), len(data))
}

func (p *packer[T]) packed(obj *T, dictionary *dictionary, data []byte, size int) *object[T] {
	p.slots++
	packed := &object[T]{shared: p.shared, dictionary: dictionary, data: data, size: uint32(size), slot: p.slots % recentObjects} //nolint:gosec // at most maxPacked
	p.shared.remember(packed, obj)
	return packed
}

func uidOf(obj any) types.UID {
	if obj, isObject := obj.(interface{ GetUID() types.UID }); isObject {
		return obj.GetUID()
	}
	return ""
}

type object[T any] struct {
	shared     *shared[T]
	dictionary *dictionary // nil: data is JSON
	data       []byte
	size, slot uint32 // size of the JSON; place among the recent objects
}

// Unpack returns the object.
func (o *object[T]) Unpack() (*T, error) {
	if recent := o.shared.recent[o.slot].Load(); recent != nil && recent.packed == o {
		return recent.unpacked, nil
	}
	obj, err := o.decode()
	if err != nil {
		return nil, err
	}
	o.shared.remember(o, obj)
	return obj, nil
}

func (o *object[T]) decode() (*T, error) {
	if o.dictionary == nil {
		return o.shared.decode(o.data)
	}
	b := borrowBuffer(int(o.size))
	defer b.release()
	if err := o.dictionary.decompress(b.bytes, o.data); err != nil {
		return nil, err
	}
	return o.shared.decode(b.bytes) // decoders do not retain the buffer
}

// recentObjects is the number of unpacked objects in a cache.
const recentObjects = 8

// shared is the common state of a cache's packed objects.
type shared[T any] struct {
	decode func([]byte) (*T, error) // does not retain the data
	recent [recentObjects]atomic.Pointer[recentObject[T]]
}

// recentObject is a recently written or read object in unpacked form.
type recentObject[T any] struct {
	packed   *object[T]
	unpacked *T
}

func (s *shared[T]) remember(packed *object[T], unpacked *T) {
	s.recent[packed.slot].Store(&recentObject[T]{packed, unpacked})
}
