package unstructured

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// splitTokens have every kind of token that a chunk can end in.
const splitTokens = ` { "kind" : "A" , "n" : [ -12.5e+3 , 9223372036854775807 , 0 , true,false,null ] ,
	"text":"plain, long enough for eight at a time","rune":"é🦊","escape":"\"\\\/\b\f\n\r\t","pair":"\ud83e\udd8a\ud83e","broken":"` + "\xf0\x9f\xa6" + `",
	"na\u006de":{"":{}},"list":[[],[{}]] } `

func TestTokensSplitAnywhereAreReadAlike(t *testing.T) {
	want, err := Decode([]byte(splitTokens))
	require.NoError(t, err)
	for size := 1; size < 64; size++ {
		for first := range len(splitTokens) {
			r := newReader(io.MultiReader(strings.NewReader(splitTokens[:first]), strings.NewReader(splitTokens[first:])), size)
			_, err := r.next()
			require.NoError(t, err)
			got, err := r.object()
			require.NoError(t, err, "window of %d, split at %d", size, first)
			require.Equal(t, want.Object, got, "window of %d, split at %d", size, first)
			require.NoError(t, r.finish())
			require.Equal(t, int64(len(splitTokens)), r.offset())
		}
	}
}

func TestErrorsTellTheSamePlaceHoweverTheInputComes(t *testing.T) {
	for name, value := range nastyValues {
		if len(value) > 1000 {
			continue
		}
		data := append(append([]byte(`{"type":"ADDED","object":`), inObject(value)...), '}')
		_, want := readEvents(NewWatchDecoder(bytes.NewReader(data)))
		for how, r := range chunked(data) {
			_, err := readEvents(NewWatchDecoder(r))
			assert.Equal(t, fmt.Sprint(want), fmt.Sprint(err), "%s, %s", name, how)
		}
	}
}

func TestLongTokensGoThroughASmallWindow(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for name, value := range map[string]string{
		"plain": long, "escape at the end": long + `\n`, "runes": strings.Repeat("é", 50_000), "escapes": strings.Repeat(`\u00e9`, 20_000),
	} {
		data := inObject(`["` + value + `",-` + strings.Repeat("1", 10_000) + `.5e-10000,` + strings.Repeat(" ", 10_000) + `1]`)
		want, err := Decode(data)
		require.NoError(t, err, name)
		for how, r := range chunked(data) {
			r := newReader(r, 16)
			_, err := r.next()
			require.NoError(t, err)
			got, err := r.object()
			require.NoError(t, err)
			assert.Equal(t, want.Object, got, "%s, %s", name, how)
		}
	}
}

func TestPlainPrefixEndsAtTheFirstSpecialByte(t *testing.T) {
	for length := range 20 {
		plain := []byte(strings.Repeat("a", length))
		assert.Equal(t, length, plainPrefix(plain))
		for i := range length {
			for b := range 256 {
				text := bytes.Clone(plain)
				text[i] = byte(b)
				want := length
				if b < ' ' || b == '"' || b == '\\' || b >= 0x80 {
					want = i
				}
				require.Equal(t, want, plainPrefix(text), "%q", text)
			}
		}
	}
}
