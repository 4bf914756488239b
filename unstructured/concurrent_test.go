package unstructured

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// small is an object like no other of these, and unlike them in shape, so that a value of one in another shows.
func small(i int) *Object {
	own := func(of string) string { return fmt.Sprintf("%s-%d", of, i) }
	m := map[string]any{"kind": "Thing", "apiVersion": "example.com/v1", own("field"): own("value"), "number": int64(i), "escaped": own("a\n\"é\xf0\x9f\xa6\x8a")}
	list := []any{}
	for n := range i % 7 {
		list = append(list, map[string]any{own("name"): []any{int64(n), own("element"), nil, float64(i) + 0.5}})
	}
	m["list"] = list
	return &Object{Object: m}
}

func TestDecode_Concurrent(t *testing.T) {
	const workers, rounds = 8, 200
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for round := range rounds {
				i := w*rounds + round
				data, err := Encode(small(i))
				if !assert.NoError(t, err) {
					return
				}
				kept := bytes.Clone(data)
				obj, err := Decode(data)
				if !assert.NoError(t, err) || !assert.Equal(t, small(i), obj) {
					return
				}
				// An error in the middle must not leave anything behind for whoever borrows the reader next.
				_, err = Decode(data[:len(data)/2])
				assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
				assert.Equal(t, kept, data, "somebody else has written to the result")
			}
		})
	}
	group.Wait()
}

func TestDecode_ObjectsShareNoMemory(t *testing.T) {
	data, err := Encode(small(6))
	require.NoError(t, err)
	first, err := Decode(data)
	require.NoError(t, err)
	second, err := Decode(data)
	require.NoError(t, err)
	first.Object["list"].([]any)[0].(map[string]any)["name-6"].([]any)[0] = "changed"
	delete(first.Object, "number")
	assert.Equal(t, small(6), second)
}
