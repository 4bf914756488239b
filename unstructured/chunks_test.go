package unstructured

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// splitTokens have every kind of token that a chunk can end in.
const splitTokens = ` { "kind" : "A" , "n" : [ -12.5e+3 , 9223372036854775807 , 0 , true,false,null ] ,
	"text":"plain, long enough for eight at a time","rune":"é🦊","escape":"\"\\\/\b\f\n\r\t","pair":"\ud83e\udd8a\ud83e","broken":"` + "\xf0\x9f\xa6" + `",
	"na\u006de":{"":{}},"list":[[],[{}]] } `

func TestWatchDecoder_SameErrorsForAnyChunks(t *testing.T) {
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
