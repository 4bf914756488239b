package unstructured

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/json"
)

func bench(b *testing.B, name string, size int, do func() error) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(size))
		for b.Loop() {
			if err := do(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, file := range []string{"pod.json", "configmap.json", "event.json"} {
		data := sample(b, file)
		b.Run(file[:len(file)-len(".json")], func(b *testing.B) {
			bench(b, "anykind", len(data), func() error {
				_, err := Decode(data)
				return err
			})
			bench(b, "apimachinery", len(data), func() error {
				_, _, err := unstructuredv1.UnstructuredJSONScheme.Decode(data, nil, &unstructuredv1.Unstructured{})
				return err
			})
			bench(b, "jsoniter", len(data), func() error {
				_, err := iterate(data)
				return err
			})
		})
	}
}

func BenchmarkList(b *testing.B) {
	data := manyPods(b, 1000, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`, ",", "]}")
	bench(b, "anykind", len(data), func() error {
		items := NewListDecoder(bytes.NewReader(data))
		for {
			if _, err := items.Next(); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
	bench(b, "lazy", len(data), func() error {
		items := NewListDecoder(bytes.NewReader(data))
		for {
			if _, err := items.NextLazy(); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
	bench(b, "lazy, names and phases", len(data), func() error {
		items := NewListDecoder(bytes.NewReader(data))
		for {
			pod, err := items.NextLazy()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if phase, _, err := Get[string](pod, "status", "phase"); err != nil || phase == "" || pod.GetName() == "" {
				return fmt.Errorf("no name or phase: %w", err)
			}
		}
	})
	bench(b, "apimachinery", len(data), func() error {
		body, err := io.ReadAll(bytes.NewReader(data))
		if err != nil {
			return err
		}
		_, _, err = unstructuredv1.UnstructuredJSONScheme.Decode(body, nil, &unstructuredv1.UnstructuredList{})
		return err
	})
}

func BenchmarkWatch(b *testing.B) {
	data := manyPods(b, 1000, `{"type":"MODIFIED","object":`, "}\n"+`{"type":"MODIFIED","object":`, "}\n")
	bench(b, "anykind", len(data), func() error {
		events := NewWatchDecoder(bytes.NewReader(data))
		for {
			if _, err := events.Next(); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
	bench(b, "lazy", len(data), func() error {
		events := NewWatchDecoder(bytes.NewReader(data))
		for {
			if _, err := events.NextLazy(); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
	bench(b, "apimachinery", len(data), func() error {
		// What client-go puts together: a framer, the event, then its object.
		frames := serializer.Framer.NewFrameReader(io.NopCloser(bytes.NewReader(data)))
		buf := make([]byte, 64<<10)
		for {
			n, err := frames.Read(buf)
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			var event metav1.WatchEvent
			if err := json.Unmarshal(buf[:n], &event); err != nil {
				return err
			}
			if _, _, err := unstructuredv1.UnstructuredJSONScheme.Decode(event.Object.Raw, nil, &unstructuredv1.Unstructured{}); err != nil {
				return err
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	data := sample(b, "pod.json")
	obj, err := Decode(data)
	require.NoError(b, err)
	bench(b, "anykind", len(data), func() error {
		_, err := Encode(obj)
		return err
	})
	bench(b, "apimachinery", len(data), func() error {
		var out bytes.Buffer
		return unstructuredv1.UnstructuredJSONScheme.Encode(obj, &out)
	})
}

// manyPods is n pods of different names, each with first before it, or between for all but the first.
func manyPods(b testing.TB, n int, first, between, last string) []byte {
	pod := bytes.TrimSpace(sample(b, "pod.json"))
	data := []byte(first)
	for i := range n {
		if i > 0 {
			data = append(data, between...)
		}
		data = append(data, bytes.ReplaceAll(pod, []byte("x2x9z"), []byte(strconv.Itoa(10000+i)))...)
	}
	return append(data, last...)
}
