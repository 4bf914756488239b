package cache

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

type packedPod struct{ pod *metav1.PartialObjectMetadata }

func (p packedPod) Unpack() (*metav1.PartialObjectMetadata, error) { return p.pod.DeepCopy(), nil }

func newPackedPods(count int) *Cache[metav1.PartialObjectMetadata] {
	c := New(Source[metav1.PartialObjectMetadata](nil), &Options[metav1.PartialObjectMetadata]{
		Pack: func(pod *metav1.PartialObjectMetadata) Packed[metav1.PartialObjectMetadata] { return packedPod{pod} },
	})
	for i := range count {
		pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("team-%d", i%100), Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)), ResourceVersion: "7",
			Labels: map[string]string{
				"app": fmt.Sprintf("web-%d", i), "pod-template-hash": "5d4f8c7b9", "app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop",
			},
		}}
		c.put(KeyOf(pod), pod)
	}
	return c
}

func BenchmarkCache_SelectorWithOneMatch(b *testing.B) {
	c := newPackedPods(50_000)
	selector, err := labels.Parse("app=web-77,app.kubernetes.io/part-of=shop")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("List", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if len(c.List("", selector)) != 1 {
				b.Fatal("not one match")
			}
		}
	})
	b.Run("All", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			count := 0
			for range c.All("", selector) {
				count++
			}
			if count != 1 {
				b.Fatal("not one match")
			}
		}
	})
}
