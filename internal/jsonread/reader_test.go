package jsonread

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/anykind/anykind/internal/testing/jsoncases"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func decode(data []byte) (map[string]any, error) {
	r := Borrow(data)
	defer r.Release()
	return r.Object()
}

// splitTokens have every kind of token that a chunk can end in.
const splitTokens = ` { "kind" : "A" , "n" : [ -12.5e+3 , 9223372036854775807 , 0 , true,false,null ] ,
	"text":"plain, long enough for eight at a time","rune":"é🦊","escape":"\"\\\/\b\f\n\r\t","pair":"\ud83e\udd8a\ud83e","broken":"` + "\xf0\x9f\xa6" + `",
	"na\u006de":{"":{}},"list":[[],[{}]] } `

func TestReader_TokensSplitAnywhere(t *testing.T) {
	want, err := decode([]byte(splitTokens))
	require.NoError(t, err)
	for size := 1; size < 64; size++ {
		for first := range len(splitTokens) {
			r := NewReader(io.MultiReader(strings.NewReader(splitTokens[:first]), strings.NewReader(splitTokens[first:])), size)
			got, err := r.Object()
			require.NoError(t, err, "buffer of %d, split at %d", size, first)
			require.Equal(t, want, got, "buffer of %d, split at %d", size, first)
			require.NoError(t, r.End())
			require.Equal(t, int64(len(splitTokens)), r.Offset())
		}
	}
}

func TestReader_LongTokens(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for name, value := range map[string]string{
		"plain": long, "escape at the end": long + `\n`, "runes": strings.Repeat("é", 50_000), "escapes": strings.Repeat(`\u00e9`, 20_000),
	} {
		data := jsoncases.InObject(`["` + value + `",-` + strings.Repeat("1", 10_000) + `.5e-10000,` + strings.Repeat(" ", 10_000) + `1]`)
		want, err := decode(data)
		require.NoError(t, err, name)
		for how, r := range jsoncases.Chunked(data) {
			r := NewReader(r, 16)
			got, err := r.Object()
			require.NoError(t, err)
			assert.Equal(t, want, got, "%s, %s", name, how)
		}
	}
}

func TestPlainPrefix_EndsAtFirstSpecialByte(t *testing.T) {
	for length := range 20 {
		plain := []byte(strings.Repeat("a", length))
		assert.Equal(t, length, PlainPrefix(plain))
		for i := range length {
			for b := range 256 {
				text := bytes.Clone(plain)
				text[i] = byte(b)
				want := length
				if b < ' ' || b == '"' || b == '\\' || b >= 0x80 {
					want = i
				}
				require.Equal(t, want, PlainPrefix(text), "%q", text)
			}
		}
	}
}

func TestReader_ReleaseForgetsValues(t *testing.T) {
	for _, data := range []string{
		`{"kind":"Secret","data":{"a":"c2VjcmV0","b":["c2VjcmV0","\u00632VjcmV0","\n"]}}`,
		`{"kind":"Secret","data":{"a":"c2VjcmV0","b":["c2VjcmV0","\u00632VjcmV0",`,
	} {
		r := Borrow([]byte(data))
		_, _ = r.Value()
		r.Release()
		assert.Nil(t, r.buf)
		assert.Empty(t, strings.Trim(string(r.scratch[:cap(r.scratch)]), "\x00"))
		assert.NotContains(t, r.names.slots, "c2VjcmV0")
		for _, m := range r.members[:cap(r.members)] {
			assert.Zero(t, m)
		}
		for _, element := range r.elements[:cap(r.elements)] {
			assert.Nil(t, element)
		}
	}
}

func TestReader_ReleaseDropsLargeBuffers(t *testing.T) {
	r := Borrow([]byte("[" + strings.Repeat("1,", 2*maxPooled) + `"` + strings.Repeat(`\n`, 2*maxPooled) + `"]`))
	_, err := r.Value()
	require.NoError(t, err)
	r.Release()
	assert.LessOrEqual(t, cap(r.elements), maxPooled)
	assert.LessOrEqual(t, cap(r.scratch), maxPooled)
}
