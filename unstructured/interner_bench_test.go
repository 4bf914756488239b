package unstructured

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/jsonread"
)

// workloads is n running pods as a server has them: twenty of each workload, and of each pod its own names, addresses,
// times and token volume.
func workloads(t testing.TB, n int, first, between, last string) []byte {
	pod := string(bytes.TrimSpace(sample(t, "pod.json")))
	data := []byte(first)
	for i := range n {
		if i > 0 {
			data = append(data, between...)
		}
		own := func(text string, length int) string { return fmt.Sprintf("%0*x", length, i*7919+len(text)) }
		data = append(data, strings.NewReplacer(
			"x2x9z", own("name", 5), "7k2vq", own("volume", 5), "0d2c1b2e", own("uid", 8), "184467", fmt.Sprint(200000+i),
			"10.244.1.17", fmt.Sprintf("10.244.%d.%d", i/250, i%250), "node-a-1", fmt.Sprint("node-", i%100), "10.0.0.11", fmt.Sprint("10.0.0.", i%100),
			":14:31Z", fmt.Sprintf(":%02d:%02dZ", i/60%60, i%60), ":14:35Z", fmt.Sprintf(":%02d:%02dZ", (i+4)/60%60, (i+4)%60),
			"b2c6a1a0", own("container", 8), "6d4b75cb6d", fmt.Sprintf("%010x", i/20), "v1.42.0", fmt.Sprintf("v1.42.%d", i/20), "5e0f9c1a", fmt.Sprintf("%08x", i/20),
		).Replace(pod)...)
	}
	return append(data, last...)
}

func BenchmarkInterning(b *testing.B) {
	var changes [8][]byte // of every pod
	for i := range changes {
		data := workloads(b, 1000, `{"type":"MODIFIED","object":`, "}\n"+`{"type":"MODIFIED","object":`, "}\n")
		changes[i] = bytes.ReplaceAll(data, []byte(`"prometheus.io/scrape":"true"`), fmt.Appendf(nil, `"changed":"%d"`, i))
	}
	for _, interner := range []*jsonread.Interner{nil, jsonread.NewInterner()} {
		held := make([]*Object, 1000)
		b.Run(fmt.Sprint("interned=", interner != nil), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(changes[0])))
			for i := 0; b.Loop(); i++ {
				events := NewWatchDecoder(interner.Source(bytes.NewReader(changes[i%len(changes)])))
				for at := 0; ; at++ {
					event, err := events.Next()
					if err == io.EOF {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					held[at] = event.Object // in place of its previous version, as a cache does
				}
			}
			var with, without runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&with)
			clear(held)
			runtime.GC()
			runtime.ReadMemStats(&without)
			b.ReportMetric(float64(with.HeapAlloc-without.HeapAlloc)/1000, "held-B/object")
		})
	}
}
