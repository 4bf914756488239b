// Package packed compresses the objects of caches: in the heap, an object takes about a tenth of its JSON.
//
//	pods := cache.New(dynamic.As[unstructured.Lazy](resource), &cache.Options[unstructured.Lazy]{Pack: packed.New[unstructured.Lazy]()})
//
// # Idea
//
// Objects of a kind repeat field names, values and whole subtrees. Each object is compressed separately as an S2 block with a
// dictionary. The dictionary is the JSON of sample objects of the cache: repeated parts are references into it. S2 needs no state
// but the dictionary, and a few microseconds.
//
// # Invariants
//
// An object references the dictionary used to pack it, and keeps it alive: a new dictionary affects new objects only, and readers
// never wait. Incompressible objects, such as random data, are stored unpacked. So are all objects of a cache smaller than a
// dictionary.
//
// # Memory
//
// A cache gets its first dictionary at 16 objects with JSON of at least the dictionary's size: content of up to 64 KiB plus a
// table of 32 KiB. As objects change their shape there are at most 8 dictionaries, and only the last has a table. A cache keeps 8
// recently used objects unpacked, and at most 16 samples of 8 KiB for its next dictionary. The packing goroutine needs 128 KiB of
// stack. The garbage collector takes it back while the goroutine waits.
package packed

import (
	"encoding/json"
	"errors"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/unstructured"
)

// admitted are the limits for decoding packed objects. Their size was checked when they were first decoded.
var admitted = unstructured.Limits{Object: -1}

// New returns a function for [cache.Options].Pack. Conversion of T to JSON and back must be lossless. *unstructured.Lazy is JSON
// in memory and costs the least time; *unstructured.Object and structs are encoded and decoded. Caches with the same function
// share its dictionaries: they should have objects of the same kind. The function is safe for concurrent use. It returns nil for an
// *unstructured.Lazy or *unstructured.Object without a kind or with a malformed apiVersion, so a Transform should keep both fields.
func New[T any]() func(obj *T) cache.Packed[T] { return newPacker[T]().Pack }

func newPacker[T any]() *packer[T] {
	p := &packer[T]{
		encode:  func(obj *T) ([]byte, error) { return json.Marshal(obj) },
		learner: learner{alive: new(atomic.Int32)},
		shared: &shared[T]{decode: func(data []byte) (*T, error) {
			obj := new(T)
			return obj, json.Unmarshal(data, obj)
		}},
	}
	switch p := any(p).(type) {
	case *packer[unstructured.Lazy]:
		p.encode = func(obj *unstructured.Lazy) ([]byte, error) { return obj.JSON(), checkType(obj.GroupVersionKind()) }
		p.isJSON = true
		p.shared.decode = admitted.DecodeLazy
	case *packer[unstructured.Object]:
		p.encode = func(obj *unstructured.Object) ([]byte, error) {
			if err := checkType(obj.GroupVersionKind()); err != nil {
				return nil, err
			}
			return unstructured.Encode(obj)
		}
		p.shared.decode = admitted.Decode
	}
	return p
}

// errNoType is the error of an object that cannot be decoded.
var errNoType = errors.New("the object has no kind, or a malformed apiVersion")

func checkType(kind schema.GroupVersionKind) error {
	if kind.Kind == "" {
		return errNoType
	}
	return nil
}
