package shard_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/shard"
)

func TestHash_FNV1a(t *testing.T) {
	for _, value := range []string{"", "default", "0b6f3a0e-1c7b-4a57-8f4b-2f1d0d4ad1a7"} {
		want := fnv.New64a()
		_, _ = want.Write([]byte(value))
		assert.Equal(t, want.Sum64(), shard.Hash(value), value)
	}
}

func TestSplit_SelectsEachObjectOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 8, 64} {
		selectors := shard.Split(shard.UID, n)
		require.Len(t, selectors, n)
		counts := make([]int, n)
		for range 4000 {
			uid := types.UID(fmt.Sprintf("%08x-1c7b-4a57-8f4b-%012x", random.Uint32(), random.Uint64()>>16))
			found := 0
			for part, selector := range selectors {
				if selector.Matches("any", uid) {
					counts[part]++
					found++
				}
			}
			require.Equal(t, 1, found, uid)
		}
		for _, count := range counts {
			assert.InDelta(t, 4000/n, count, 5*math.Sqrt(4000/float64(n)))
		}
	}
}

func TestSelector_Subtract(t *testing.T) {
	half := shard.Split(shard.UID, 2)
	for name, tc := range map[string]struct{ from, subtracted, want shard.Selector }{
		"zero value without itself":       {shard.Selector{}, shard.Selector{}, shard.New(shard.UID)},
		"zero value without a half":       {shard.Selector{}, half[0], half[1]},
		"half without the zero value":     {half[0], shard.Selector{}, shard.New(shard.UID)},
		"half without the remaining half": {half[0], half[1], half[0]},
	} {
		rest := tc.from.Subtract(tc.subtracted)
		assert.True(t, rest.Equal(tc.want), "%s: %q", name, rest)
		assert.Equal(t, tc.want.Matches("shop", "some-uid"), rest.Matches("shop", "some-uid"), name)
	}
}

func TestSelector_Matches(t *testing.T) {
	hash := shard.Hash("shop")
	only := shard.Range{First: hash, Last: hash}
	for name, tc := range map[string]struct {
		selector shard.Selector
		want     bool
	}{
		"zero value":                   {shard.Selector{}, true},
		"namespace in the range":       {shard.New(shard.Namespace, only), true},
		"UID outside of the range":     {shard.New(shard.UID, only), false},
		"no range":                     {shard.New(shard.UID), false},
		"range above":                  {shard.New(shard.Namespace, shard.Range{First: hash + 1, Last: math.MaxUint64}), false},
		"range below":                  {shard.New(shard.Namespace, shard.Range{First: 0, Last: hash - 1}), false},
		"ranges below, at and above":   {shard.New(shard.Namespace, shard.Range{First: 0, Last: 9}, only, shard.Range{First: hash + 9, Last: hash + 10}), true},
		"empty range":                  {shard.New(shard.Namespace, shard.Range{First: hash + 1, Last: hash - 1}), false},
		"all hashes":                   {shard.New(shard.Namespace, shard.All()...), true},
		"all hashes in three ranges":   {shard.New(shard.Namespace, shard.Range{First: 20, Last: math.MaxUint64}, shard.Range{First: 0, Last: 10}, shard.Range{First: 5, Last: 19}), true},
		"gap of one hash, which it is": {shard.New(shard.Namespace, shard.Range{First: 0, Last: hash - 1}, shard.Range{First: hash + 1, Last: math.MaxUint64}), false},
	} {
		assert.Equal(t, tc.want, tc.selector.Matches("shop", "some-uid"), name)
	}
}

func TestSelector_String(t *testing.T) {
	const full = "0x10000000000000000"
	for want, selector := range map[string]shard.Selector{
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')": shard.Split(shard.UID, 2)[0],
		"shardRange(object.metadata.namespace, '0x8000000000000000', '" + full + "')": shard.Split(shard.Namespace, 2)[1],
		"shardRange(object.metadata.uid, '0x0000000000000001', '0x0000000000000005') || shardRange(object.metadata.uid, '0x0000000000000010', '0x0000000000000011')": shard.New(shard.UID,
			shard.Range{First: 16, Last: 16}, shard.Range{First: 3, Last: 4}, shard.Range{First: 1, Last: 2}),
	} {
		assert.Equal(t, want, selector.String())
		parsed, err := shard.Parse(want)
		require.NoError(t, err)
		assert.True(t, parsed.Equal(selector), want)
	}
	assert.Empty(t, shard.Selector{}.String())
	assert.Empty(t, shard.New(shard.UID, shard.All()...).String())
	assert.True(t, shard.New(shard.UID).IsNothing())
}

func TestParse_Invalid(t *testing.T) {
	for text, want := range map[string]string{
		"": `"" is not shardRange`,
		"shardRange(object.metadata.uid, '0x0', '0x8000000000000000')":                               `the bound "0x0"`,
		"shardRange(object.metadata.uid, '0x000000000000000A', '0x8000000000000000')":                `the bound "0x000000000000000A"`,
		"shardRange(object.metadata.uid, 0x0000000000000000, '0x8000000000000000')":                  `the bound ""`,
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000001')":               `the bound "0x10000000000000001"`,
		"shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')":               "the field",
		"shardRange(metadata.uid, '0x0000000000000000', '0x8000000000000000')":                       "the field",
		"shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')":                "must be less than",
		"shardRange(object.metadata.uid, '0x0000000000000000') || x":                                 "is not shardRange",
		shard.Split(shard.UID, 2)[0].String() + " || " + shard.Split(shard.Namespace, 2)[1].String(): "the same field",
	} {
		_, err := shard.Parse(text)
		assert.ErrorContains(t, err, want, text)
	}
}

// TestRanges_SetAlgebra compares the operations with sets of single hashes.
func TestRanges_SetAlgebra(t *testing.T) {
	const size = 40
	random := rand.New(rand.NewPCG(1, 2))
	draw := func() shard.Ranges {
		var ranges []shard.Range
		for range random.IntN(5) {
			first := random.Uint64N(size)
			ranges = append(ranges, shard.Range{First: first, Last: first + random.Uint64N(8)})
		}
		if random.IntN(3) == 0 {
			ranges = append(ranges, shard.Range{First: size, Last: math.MaxUint64})
		}
		return shard.Union(ranges...)
	}
	for range 2000 {
		a := draw()
		b := draw()
		both := a.Intersect(b)
		rest := a.Subtract(b)
		union := shard.Union(append(append([]shard.Range{}, a...), b...)...)
		for hash := range uint64(size + 10) {
			require.Equal(t, a.Contains(hash) && b.Contains(hash), both.Contains(hash), "%v %v %d", a, b, hash)
			require.Equal(t, a.Contains(hash) && !b.Contains(hash), rest.Contains(hash), "%v %v %d", a, b, hash)
			require.Equal(t, a.Contains(hash) || b.Contains(hash), union.Contains(hash), "%v %v %d", a, b, hash)
		}
		require.Equal(t, union, shard.Union(append(both, append(rest, b...)...)...))
	}
	assert.InDelta(t, 0.25, shard.Split(shard.UID, 4)[1].Ranges().Share(), 1e-9)
	assert.Empty(t, shard.All().Subtract(shard.All()))
}
