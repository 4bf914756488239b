package typememory

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type inner struct {
	Fill [10]int64
	Next *inner
	List []inner
}

type embedded struct{ X, Y [20]int64 }

type outer struct {
	*embedded
	inner

	Named  inner            `json:"named"`
	Hidden []inner          `json:"-"`
	Map    map[string]inner `json:"map,omitempty"`
	Any    any
	Raw    json.RawMessage
	K      []inner
}

func smallestLimit(text string) int64 {
	for limit := int64(1); ; limit *= 2 {
		if !Exceeds([]byte(text), &outer{}, limit) {
			return limit
		}
	}
}

// TestExceeds_CountsWhatIsDecoded compares a long list in fields that are decoded with the same list in others.
func TestExceeds_CountsWhatIsDecoded(t *testing.T) {
	list := "[" + strings.Repeat(`{"x":0},`, 10000) + "null]"
	for text, isLarge := range map[string]bool{
		`{"List":` + list + `}`: true, `{"list":` + list + `}`: true, `{"named":{"Next":{"List":` + list + `}}}`: true,
		`{"k":` + list + `}`: true, "{\"\u212a\":" + list + `}`: true, // encoding/json takes a Kelvin sign for k
		`{"map":{"a":{"List":` + list + `}}}`: true, `{"Any":` + list + `}`: true,
		`{"unknown":` + list + `}`: false, `{"-":` + list + `}`: false, `{"Hidden":` + list + `}`: false, `{"Named":0,"map":` + list + `}`: false,
		`{"Fill":` + list + `}`: false, `{"x":` + list + `,"Y":[1]}`: false,
	} {
		var v outer
		_ = json.Unmarshal([]byte(text), &v) // it must not panic
		assert.Equal(t, isLarge, smallestLimit(text) > 1<<19, "%.40s", text)
	}
}

// TestExceeds_CountsEmptyMaps counts at least the 48 bytes that an empty map takes.
func TestExceeds_CountsEmptyMaps(t *testing.T) {
	const count = 10000
	assert.True(t, Exceeds([]byte("["+strings.Repeat("{},", count-1)+"{}]"), &[]map[string]string{}, 48*count))
	assert.True(t, Exceeds([]byte("["+strings.Repeat(`{"map":{}},`, count-1)+"null]"), &[]struct{ Map map[string]string }{}, 48*count))
}

func TestExceeds_OddInput(t *testing.T) {
	for _, text := range []string{"", "{", "[", `{"List":[`, `{"List":[{},`, "nul", `{"List":[x]}`, "0", `"a"`, strings.Repeat("[", 20000)} {
		assert.False(t, Exceeds([]byte(text), &outer{}, 1<<30), text)
		_ = Exceeds([]byte(text), &outer{}, 1)
	}
	assert.False(t, Exceeds([]byte("[1]"), nil, 1))
	assert.False(t, Exceeds([]byte("[1]"), outer{}, 1))
	require.True(t, Exceeds([]byte(`[[1,2,3]]`), &[][]int64{}, 50))
	require.False(t, Exceeds([]byte(`[[1,2,3]]`), &[][]int64{}, 500))
}
