package jsonpatch

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func TestApply_CopiesAreBounded(t *testing.T) {
	operations := make([]string, 16)
	for i := range operations {
		operations[i] = fmt.Sprintf(`{"op":"copy","from":"/data","path":"/data/%d"}`, i)
	}
	patch, err := jsonpatch.DecodePatch([]byte("[" + strings.Join(operations, ",") + "]"))
	require.NoError(t, err)
	document := []byte(`{"data":{"a":"` + strings.Repeat("x", 1024) + `"}}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = Apply(document, patch)
	runtime.ReadMemStats(&after)
	require.EqualError(t, err, "Unable to complete the copy, the accumulated size increase of copy is 4246456, exceeding the limit 3145728")
	// The race detector allocates more.
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(40*MaxCopied))
}

// random returns JSON of all forms, also with duplicate and escaped fields, and with escaped characters.
func random(r *rand.Rand, depth int) string {
	names := []string{`"a"`, `"b"`, `"\u0061"`, `"1"`, `""`, `"<"`}
	forms := 8
	if depth == 0 {
		forms = 5
	}
	switch r.IntN(forms) {
	case 0:
		return "null"
	case 1:
		return `"<\u00e9é"`
	case 2:
		return "1.0"
	case 3, 4:
		return []string{"true", `""`, " {} ", "[ ]", `"\ud800"`}[r.IntN(5)]
	case 5:
		var items []string
		for range r.IntN(3) {
			items = append(items, random(r, depth-1))
		}
		return "[" + strings.Join(items, " , ") + "]"
	}
	var fields []string
	for range r.IntN(4) {
		fields = append(fields, names[r.IntN(len(names))]+": "+random(r, depth-1))
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// randomPatch returns a random patch; most of its operations apply to the document.
func randomPatch(r *rand.Rand, document []byte) (patch jsonpatch.Patch) {
	path := func() string {
		text := ""
		for range 1 + r.IntN(3) {
			text += "/" + []string{"a", "b", "a", "b", "0", "1", "-1", "-2", "-", "", "<", "3"}[r.IntN(12)]
		}
		if r.IntN(50) == 0 {
			return ""
		}
		return text
	}
	for range 60 {
		op := []string{"copy", "copy", "copy", "add", "replace", "move", "remove", "test", "add", "copy"}[r.IntN(10)]
		text := fmt.Sprintf(`[{"op":%q,"path":%q,"from":%q,"value":%s}]`, op, path(), path(), random(r, 3))
		if r.IntN(10) == 0 {
			text = fmt.Sprintf(`[{"op":%q,"path":%q}]`, op, path())
		}
		next, err := jsonpatch.DecodePatch([]byte(text))
		if err != nil {
			panic(err)
		}
		longer := append(patch[:len(patch):len(patch)], next...)
		result := outcome(func() ([]byte, error) { return longer.Apply(document) })
		if strings.HasSuffix(result, " <nil>") || r.IntN(100) == 0 {
			patch = longer
		}
	}
	return patch
}

// outcome calls f and returns its result as text, also if it panics.
func outcome(f func() ([]byte, error)) (text string) {
	defer func() {
		if reason := recover(); reason != nil {
			text = fmt.Sprint("panic: ", reason)
		}
	}()
	content, err := f()
	return fmt.Sprintf("%s %v", content, err)
}

func TestApply_AgreesWithTheLibrary(t *testing.T) {
	const limit = 30
	defer func() { jsonpatch.AccumulatedCopySizeLimit = 0 }() // of this test's process: Apply must not need it
	r := rand.New(rand.NewPCG(1, 2))
	kinds := map[string]int{}
	for range 1_000 {
		document := []byte(`{"a":` + random(r, 4) + `,"b":` + random(r, 4) + `}`)
		patch := randomPatch(r, document)
		jsonpatch.AccumulatedCopySizeLimit = limit
		want := outcome(func() ([]byte, error) { return patch.Apply(document) })
		jsonpatch.AccumulatedCopySizeLimit = 0
		got := outcome(func() ([]byte, error) { return apply(document, patch, limit) })
		if want != got {
			text, _ := json.Marshal(patch)
			require.Equal(t, want, got, "%s\n%s", document, text)
		}
		switch {
		case strings.HasPrefix(want, "panic"):
			kinds["panic"]++
		case strings.Contains(want, "exceeding the limit"):
			kinds["limit"]++
		case json.Valid([]byte(strings.TrimSuffix(want, " <nil>"))):
			kinds["patched"]++
		default:
			kinds["error"]++
		}
	}
	t.Log(kinds)
	for _, kind := range []string{"limit", "patched", "error"} {
		assert.Greater(t, kinds[kind], 20, kind)
	}
}
