package jsonread

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/anykind/anykind/internal/testing/jsoncases"
)

// objects is a stream of objects.
func objects(all ...string) io.Reader { return strings.NewReader(strings.Join(all, "\n")) }

func decodeAll(t *testing.T, interner *Interner, r io.Reader) []*unstructuredv1.Unstructured {
	t.Helper()
	all, err := readAll(NewReader(interner.Source(r), 4<<10))
	require.NoError(t, err)
	return all
}

func readAll(r *Reader) (all []*unstructuredv1.Unstructured, err error) {
	for {
		if _, err := r.PeekStart(); err == io.EOF {
			return all, nil
		}
		v, err := r.TopValue()
		if err != nil {
			return all, err
		}
		m, isObject := v.(map[string]any)
		if !isObject {
			return all, fmt.Errorf("not an object: %T", v)
		}
		all = append(all, r.NewObject(m, false))
	}
}

// address returns where a field's map or list is in memory.
func address(t *testing.T, obj *unstructuredv1.Unstructured, fields ...string) uintptr {
	t.Helper()
	v, _, err := unstructuredv1.NestedFieldNoCopy(obj.Object, fields...)
	require.NoError(t, err)
	return reflect.ValueOf(v).Pointer()
}

func TestInterner_ObjectsAreNew(t *testing.T) {
	const obj = `{"kind":"Thing","apiVersion":"v1","spec":{"a":[1]}}`
	all := decodeAll(t, NewInterner(), objects(obj, obj, obj, obj))
	assert.Equal(t, address(t, all[2], "spec"), address(t, all[3], "spec"))
	all[3].SetKind("Other")
	assert.Equal(t, "Thing", all[2].GetKind())
}

// TestInterner_IsBounded reads what comes twice and never again, for ever.
func TestInterner_IsBounded(t *testing.T) {
	interner := NewInterner()
	r := NewReader(interner.Source(nil), 0)
	read := func(text string) {
		r.buffer = buffer{buf: []byte(text), end: len(text)}
		r.lookahead = 0
		r.unlimit()
		_, err := r.internedValue(node{})
		require.NoError(t, err)
	}
	const length = 1 << 10
	const values = 1000
	for i := range 3 * values {
		if i%values == 0 { // a generation is nearly full, without the time that it takes to fill it
			interner.size = maxGenerationSize - values/2*length
		}
		interner.hits = [256]hitCounter{} // else it would give up
		for range 2 {
			read(fmt.Sprintf(`["%0*d"]`, length, i))
		}
	}
	assert.LessOrEqual(t, interner.size, int64(maxGenerationSize+2*length))
	assert.Less(t, len(interner.recent)+len(interner.older), 2*values+2)

	read(`{"mine":1}`)
	read(`{"mine":1}`)
	for range 3 * maxLookups {
		read(`{"other":1}`)
	}
	assert.NotContains(t, interner.recent, `{"mine":1}`)
	assert.NotContains(t, interner.older, `{"mine":1}`, "what does not come any more is forgotten")
	assert.Contains(t, interner.recent, `{"other":1}`)
}

// TestInterner_SlowStream reads objects that come twice and never again, one each second.
func TestInterner_SlowStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		interner := NewInterner()
		for i := range 3600 {
			obj := fmt.Sprintf(`{"kind":"Thing","apiVersion":"v1","metadata":{"labels":{"app":"web"},"annotations":{"time":"%d"}}}`, i)
			interner.hits = [256]hitCounter{} // else it would give up
			decodeAll(t, interner, objects(obj, obj))
			time.Sleep(time.Second)
		}
		const valuesInAge = int(maxGenerationAge / time.Second)
		assert.Less(t, len(interner.recent), 2*valuesInAge)
		assert.Less(t, len(interner.older), 2*valuesInAge)
		assert.Contains(t, interner.recent, `{"app":"web"}`, "what still comes is kept")
	})
}

func TestInterner_RarelyProbesFieldsWithoutHits(t *testing.T) {
	interner := NewInterner()
	for i := range 1000 {
		decodeAll(t, interner, objects(fmt.Sprintf(`{"kind":"Thing","apiVersion":"v1","status":{"value":%d}}`, i)))
	}
	assert.LessOrEqual(t, interner.lookups, 1000/256*probedOf256+20)
}

func TestInterner_LongValues(t *testing.T) {
	obj := fmt.Sprintf(`{"kind":"Thing","apiVersion":"v1","spec":{"text":%q,"list":[{"a":1}]}}`, strings.Repeat("x", 2*maxInternedJSON))
	plain, err := decode([]byte(obj))
	require.NoError(t, err)
	for _, got := range decodeAll(t, NewInterner(), objects(obj, obj, obj, obj)) {
		assert.Equal(t, plain, got.Object)
	}
}

// TestReader_BoundsLookahead reads objects in which each level has a part that is found, which makes it worth
// looking, and one that never ends within what is looked at.
func TestReader_BoundsLookahead(t *testing.T) {
	for name, level := range map[string]string{"found in between": `{"a":{},"a":{},"a":`, "never found": `{"a":`, "lists": `[{},`} {
		t.Run(name, func(t *testing.T) {
			const depth = 9000
			end := strings.Repeat(map[bool]string{true: "]", false: "}"}[name == "lists"], depth)
			obj := `{"kind":"Thing","metadata":{"uid":"u"},"spec":` + strings.Repeat(level, depth) + "1" + end + "}"
			plain, err := decode([]byte(obj))
			require.NoError(t, err)
			r := NewReader(NewInterner().Source(objects(obj, obj, obj)), 4<<10)
			for range 3 {
				v, err := r.TopValue()
				require.NoError(t, err)
				assert.Equal(t, plain, v)
				assert.LessOrEqual(t, r.lookahead, int64(maxLookahead*len(obj)+2*maxInternedJSON))
			}
		})
	}
}

// FuzzInterner reads two versions of one object, in turn and in pieces.
func FuzzInterner(f *testing.F) {
	const before, after = `{"a":[1,{"b":"c"}],"d":{"e":null}}`, `{"a":[1,{"b":"d"}],"d":{"e":null},"f":-0.0}`
	f.Add([]byte(before), []byte(after))
	for _, value := range jsoncases.Values {
		if len(value) < 1000 {
			f.Add([]byte(value), []byte(before))
		}
	}
	f.Fuzz(func(t *testing.T, before, after []byte) {
		interner := testInterner()
		var held []*unstructuredv1.Unstructured
		for i := range 6 {
			data := []byte(versionOf(1, `,"spec":`+string([][]byte{before, after}[i%2])) + "\n")
			want, wantErr := readAll(NewReader(bytes.NewReader(data), 4<<10))
			for _, r := range jsoncases.Chunked(data) {
				got, err := readAll(NewReader(interner.Source(r), 4<<10))
				assert.Equal(t, fmt.Sprintf("%#v", contents(want)), fmt.Sprintf("%#v", contents(got)))
				assert.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(err))
				held = append(held, got...)
			}
		}
		runtime.KeepAlive(held)
	})
}

func contents(objects []*unstructuredv1.Unstructured) (all []map[string]any) {
	for _, obj := range objects {
		all = append(all, obj.Object)
	}
	return all
}
