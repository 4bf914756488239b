package packed

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/internal/testing/race"
	"github.com/anykind/anykind/unstructured"
)

// liveBytes returns the growth of the live heap by what build returns.
func liveBytes(build func() any) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC() // frees the content of pools
	runtime.ReadMemStats(&before)
	held := build()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(held)
	return float64(after.HeapAlloc) - float64(before.HeapAlloc)
}

// TestPacker_TakesNoMoreThanLazy compares the objects of caches that are packed with the same that are not.
func TestPacker_TakesNoMoreThanLazy(t *testing.T) {
	race.Skip(t)
	for _, test := range []struct {
		name   string
		caches int
		texts  []string
		want   float64 // of the unpacked objects' memory
	}{
		{"many caches of few objects", 50, similar("Widget", 9), 1.05},
		{"many caches of small objects", 20, leases(50), 1.15},
		{"random secrets", 1, secrets(t, 500, 1500), 1.02},
		{"large random values", 1, secrets(t, 20, 300<<10), 1.02},
		{"similar objects", 1, similar("Widget", 1000), 0.25},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := func() (caches [][]*unstructured.Lazy) {
				for range test.caches {
					var objects []*unstructured.Lazy
					for _, text := range test.texts {
						obj, err := unstructured.DecodeLazy([]byte(text))
						require.NoError(t, err)
						objects = append(objects, obj)
					}
					caches = append(caches, objects)
				}
				return caches
			}
			type packedCache struct {
				packer func(*unstructured.Lazy) cache.Packed[unstructured.Lazy]
				kept   []*unstructured.Lazy
				packed []cache.Packed[unstructured.Lazy]
			}
			lazy := liveBytes(func() any { return all() })
			small := liveBytes(func() any {
				var caches []packedCache
				for _, objects := range all() {
					c := packedCache{packer: newLazyPacker().Pack}
					for _, obj := range objects {
						if packed := c.packer(obj); packed != nil {
							c.packed = append(c.packed, packed)
						} else {
							c.kept = append(c.kept, obj)
						}
					}
					caches = append(caches, c)
				}
				return caches
			})
			assert.Less(t, small, test.want*lazy)
		})
	}
}

// leases returns objects of half a kilobyte.
func leases(count int) (texts []string) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	for i := range count {
		texts = append(texts, fmt.Sprintf(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"node-%d","uid":"%x"},"spec":{"renewTime":"%x"},"padding":%q}`,
			i, random.Uint64(), random.Uint64(), strings.Repeat("managedFields ", 25)))
	}
	return texts
}
