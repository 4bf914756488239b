package cache

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// slowObject takes a second to encode.
type slowObject struct{}

func (*slowObject) MarshalJSON() ([]byte, error) {
	time.Sleep(time.Second)
	return []byte("{}"), nil
}

func TestMutationDetector_SlowComparisonsLeaveTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &mutationDetector[slowObject]{objects: map[types.NamespacedName]snapshot[slowObject]{}}
		for _, name := range []string{"a", "b", "c"} {
			d.put(types.NamespacedName{Name: name}, &slowObject{})
		}
		start := time.Now()
		checks := 0
		for range 600 {
			time.Sleep(time.Second) // until the next event
			before := time.Now()
			assert.False(t, d.check())
			if time.Since(before) > 0 {
				checks++
			}
		}
		assert.Equal(t, 10, checks)
		assert.Equal(t, 630*time.Second, time.Since(start))
	})
}

// TestMutationDetector_SamplesObjects stores 1,000 objects: the first 64 and one in 64 of the rest are compared.
func TestMutationDetector_SamplesObjects(t *testing.T) {
	t.Setenv(detectorVariable, "")
	d := newMutationDetector(&Options[unstructuredv1.Unstructured]{})
	key := func(i int) types.NamespacedName { return types.NamespacedName{Name: strconv.Itoa(i)} }
	objects := make([]*unstructuredv1.Unstructured, 1000)
	for i := range objects {
		objects[i] = &unstructuredv1.Unstructured{Object: map[string]any{"kind": "Pod", "i": int64(i)}}
		d.put(key(i), objects[i])
	}
	assert.Len(t, d.objects, sampleInterval+len(objects)/sampleInterval-1)
	for i, obj := range objects {
		if _, isSampled := d.objects[key(i)]; !isSampled {
			obj.Object["i"] = "changed"
		}
	}
	require.NoError(t, d.result("pods", nil))
	objects[sampleInterval-1].Object["i"] = "changed"
	assert.False(t, d.check(), "a sample is not compared after each change")
	d.put(key(sampleInterval-1), objects[0])
	assert.True(t, d.check())
	assert.EqualError(t, d.result("pods", nil),
		"cache pods: object 63 was changed by a reader (change a copy; ANYKIND_CACHE_MUTATION_DETECTOR=true finds the field)")
}

func TestNewMutationDetector_DependsOnOptions(t *testing.T) {
	t.Setenv(detectorVariable, "")
	assert.True(t, newMutationDetector(&Options[unstructuredv1.Unstructured]{}).isSampling)
	assert.False(t, newMutationDetector(&Options[unstructuredv1.Unstructured]{DetectMutations: true}).isSampling)
	assert.Nil(t, newMutationDetector(&Options[unstructuredv1.Unstructured]{DisableInterning: true}))
	t.Setenv(detectorVariable, "false")
	assert.Nil(t, newMutationDetector(&Options[unstructuredv1.Unstructured]{}))
	t.Setenv(detectorVariable, "true")
	assert.False(t, newMutationDetector(&Options[unstructuredv1.Unstructured]{DisableInterning: true}).isSampling)
}

// BenchmarkMutationDetector_Put is the cost of one event of a cache with 5,000 pods.
func BenchmarkMutationDetector_Put(b *testing.B) {
	for name, variable := range map[string]string{"none": "false", "sample": "", "full": "true"} {
		b.Run(name, func(b *testing.B) {
			b.Setenv(detectorVariable, variable)
			d := newMutationDetector(&Options[unstructuredv1.Unstructured]{})
			keys := make([]types.NamespacedName, 5000)
			objects := make([]*unstructuredv1.Unstructured, 5000)
			for i := range keys {
				keys[i] = types.NamespacedName{Namespace: "shop", Name: strconv.Itoa(i)}
				objects[i] = benchmarkPod(i)
				d.put(keys[i], objects[i])
			}
			b.ResetTimer()
			for i := range b.N {
				d.put(keys[i%5000], objects[i%5000])
			}
		})
	}
}

// benchmarkPod returns a pod of about 3 kB of JSON.
func benchmarkPod(i int) *unstructuredv1.Unstructured {
	var containers []any
	for k := range 10 {
		containers = append(containers, map[string]any{
			"name": strconv.Itoa(k), "image": "registry.example.com/shop/web:1.2.3", "ports": []any{map[string]any{"containerPort": int64(80)}},
			"env":       []any{map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "B", "value": "2"}},
			"resources": map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi"}},
		})
	}
	return &unstructuredv1.Unstructured{Object: map[string]any{
		"kind": "Pod", "apiVersion": "v1", "spec": map[string]any{"containers": containers},
		"metadata": map[string]any{"name": strconv.Itoa(i), "namespace": "shop", "labels": map[string]any{"app": "web"}},
	}}
}
