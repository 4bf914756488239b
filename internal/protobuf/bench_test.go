package protobuf

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/limits"
)

var errExceeded = errors.New("the memory limit is exceeded")

// BenchmarkDecode decodes a pod, with Protobuf and with JSON, as an item of a list.
func BenchmarkDecode(b *testing.B) {
	sample := readSample(b, "pod")
	d := NewDecoder(limits.DefaultObject, errExceeded)
	run := func(name string, size int, do func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				require.NoError(b, do())
			}
		})
	}
	run("object", len(sample.raw), func() error {
		_, err := d.Object(sample.message, sample.raw, sample.typeMeta)
		return err
	})
	run("check", len(sample.raw), func() error { return d.Check(sample.message, sample.raw, sample.typeMeta) })
	var dst []byte
	run("JSON", len(sample.raw), func() (err error) {
		dst, err = sample.message.AppendJSON(dst[:0], sample.raw, sample.typeMeta)
		return err
	})
	run("jsonread", len(sample.json), func() error {
		r := jsonread.Borrow(sample.json)
		defer r.Release()
		_, err := r.Object()
		return err
	})
	obj := decodeJSON(b, sample.json)
	run("copy", 0, func() error { // the floor: the maps alone
		runtime.DeepCopyJSON(obj)
		return nil
	})
}

// BenchmarkTable measures the first use of the table: reading it, and parsing the messages of a pod.
func BenchmarkTable(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		t := readTable()
		require.NotEmpty(b, t.messages)
	}
}
