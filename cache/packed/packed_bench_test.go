package packed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/cache/packed"
	"github.com/anykind/anykind/unstructured"
)

// benchmarkObjects returns packed objects of about 4 kB of JSON, more of them than are kept unpacked.
func benchmarkObjects(b *testing.B) (lazy []*unstructured.Lazy, all []cache.Packed[unstructured.Lazy], packer func(*unstructured.Lazy) cache.Packed[unstructured.Lazy]) {
	b.Helper()
	packer = packed.New[unstructured.Lazy]()
	for i := range 1000 {
		obj, err := unstructured.DecodeLazy(widget(i%20, i))
		require.NoError(b, err)
		lazy = append(lazy, obj)
		all = append(all, pack(packer, obj))
	}
	return lazy, all, packer
}

func BenchmarkPacker_Pack(b *testing.B) {
	lazy, _, packer := benchmarkObjects(b)
	for i := 0; b.Loop(); i++ {
		packer(lazy[i%len(lazy)])
	}
}

func BenchmarkPacked_Unpack(b *testing.B) {
	_, all, _ := benchmarkObjects(b)
	for i := 0; b.Loop(); i++ {
		if _, err := all[i%len(all)].Unpack(); err != nil {
			b.Fatal(err)
		}
	}
}
