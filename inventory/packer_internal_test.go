package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cache/packed"
	"github.com/anykind/anykind/unstructured"
)

// TestPacker_SmallKindsShareDictionaries packs 40 kinds of 10 objects, which are too few for a dictionary of their own.
func TestPacker_SmallKindsShareDictionaries(t *testing.T) {
	shared := packed.New[unstructured.Lazy]()
	object := func(kind, i int) *unstructured.Lazy {
		obj, err := unstructured.DecodeLazy(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Kind%d","metadata":{"name":"object-%d","uid":"u-%d-%d"},"spec":{%s}}`,
			kind, i, kind, i, strings.TrimSuffix(strings.Repeat(`"field":"a text of some length",`, 40), ",")))
		require.NoError(t, err)
		return obj
	}
	isPacked := 0
	for kind := range 40 {
		p := &packer{pack: shared, len: func() int { return 10 }}
		for i := range 10 {
			if stored := p.Pack(object(kind, i)); stored != nil {
				isPacked++
				unpacked, err := stored.Unpack()
				require.NoError(t, err)
				assert.Equal(t, fmt.Sprintf("object-%d", i), unpacked.GetName())
			}
		}
		assert.False(t, p.isOwn)
	}
	assert.Greater(t, isPacked, 350, "of 400")

	count := 0
	large := &packer{pack: shared, len: func() int { return count }}
	for count = range 1000 {
		large.Pack(object(99, count))
	}
	assert.True(t, large.isOwn)
	few := &packer{pack: shared, len: func() int { return 5 }}
	for i := range 1000 {
		few.Pack(object(100, i%5))
	}
	assert.False(t, few.isOwn, "objects that change often")
}
