package parity_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/shard"
)

// TestShard_MatchesLikeServer compares selectors with apimachinery's, which API servers use.
func TestShard_MatchesLikeServer(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		field := []shard.Field{shard.UID, shard.Namespace}[random.IntN(2)]
		var ranges []shard.Range
		for range 1 + random.IntN(4) {
			r := shard.Range{First: random.Uint64(), Last: random.Uint64()}
			if r.First > r.Last {
				r.First, r.Last = r.Last, r.First
			}
			if random.IntN(4) == 0 {
				r.Last = math.MaxUint64
			}
			ranges = append(ranges, r)
		}
		selector := shard.New(field, ranges...)
		upstream := upstreamSelector(t, selector)
		for range 50 {
			obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: fmt.Sprintf("tenant-%d", random.IntN(1000)), UID: types.UID(fmt.Sprintf("%016x", random.Uint64())),
			}}
			want, err := upstream.Matches(obj)
			require.NoError(t, err)
			assert.Equal(t, want, selector.Matches(obj.Namespace, obj.UID), "%s %s/%s", selector, obj.Namespace, obj.UID)
		}
	}
	for _, value := range []string{"", "default", "kube-system", "é"} {
		assert.Equal(t, sharding.HashField(value), fmt.Sprintf("%016x", shard.Hash(value)), value)
	}
}

// upstreamSelector returns apimachinery's selector of the same ranges, which has the same text.
func upstreamSelector(t *testing.T, selector shard.Selector) sharding.Selector {
	t.Helper()
	var requirements []sharding.ShardRangeRequirement
	for _, r := range selector.Ranges() {
		end := "0x10000000000000000"
		if r.Last < math.MaxUint64 {
			end = fmt.Sprintf("0x%016x", r.Last+1)
		}
		requirements = append(requirements, sharding.ShardRangeRequirement{
			Key: "object." + string(selector.Field()), Start: fmt.Sprintf("0x%016x", r.First), End: end,
		})
	}
	upstream := sharding.NewSelector(requirements...)
	if !selector.IsEverything() {
		require.Equal(t, upstream.String(), selector.String())
	}
	return upstream
}
