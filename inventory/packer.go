package inventory

import (
	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/cache/packed"
	"github.com/anykind/anykind/unstructured"
)

const (
	// ownDictionarySize is the JSON, in bytes, of the objects of a kind with a dictionary of its own. The dictionary takes about 100 kB,
	// and objects take about a third of what they take with the dictionary of all small kinds.
	ownDictionarySize = 512 << 10
	// packsPerCheck is the number of packed objects between two looks at the size of a kind.
	packsPerCheck = 64
)

// packer packs the objects of a kind: with the dictionaries of all small kinds, or with its own if it is large.
type packer struct {
	pack  func(*unstructured.Lazy) cache.Packed[unstructured.Lazy]
	len   func() int // the number of objects of the kind
	isOwn bool

	packs int
	bytes int // of JSON, in all packs
}

// Pack is the function of cache.Options. Only Run's goroutine calls it.
func (p *packer) Pack(obj *unstructured.Lazy) cache.Packed[unstructured.Lazy] {
	p.packs++
	p.bytes += len(obj.JSON())
	if !p.isOwn && p.packs%packsPerCheck == 0 && p.len()*(p.bytes/p.packs) >= ownDictionarySize {
		p.isOwn = true
		p.pack = packed.New[unstructured.Lazy]()
	}
	return p.pack(obj)
}
