package unstructured

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/limits"
	"github.com/anykind/anykind/internal/testing/race"
)

// shapes are JSON values of little text and much memory, of at least so many bytes.
var shapes = map[string]func(size int) string{
	"nested objects": func(size int) string {
		return deep(size, `{"":`, `0`, `}`)
	},
	"nested lists":    func(size int) string { return deep(size, `[`, ``, `]`) },
	"small objects":   func(size int) string { return many(size, `{"":0}`) },
	"empty objects":   func(size int) string { return many(size, `{}`) },
	"empty lists":     func(size int) string { return many(size, `[]`) },
	"numbers":         func(size int) string { return many(size, `0`) },
	"large numbers":   func(size int) string { return many(size, `1000`) },
	"fractions":       func(size int) string { return many(size, `.1`[1:]+`.5`) },
	"strings":         func(size int) string { return many(size, `"%08d"`) },
	"members":         func(size int) string { return "{" + strings.Trim(many(size, `"%08d":0`), "[]") + "}" },
	"long string":     func(size int) string { return `"` + strings.Repeat("x", size) + `"` },
	"invalid UTF-8":   func(size int) string { return `"` + strings.Repeat("\xff", size) + `"` },
	"long name":       func(size int) string { return `{"` + strings.Repeat("x", size) + `":0}` },
	"long number":     func(size int) string { return `0.` + strings.Repeat("0", size) },
	"white space":     func(size int) string { return `[` + strings.Repeat(" ", size) + `]` },
	"duplicate names": func(size int) string { return "{" + strings.Trim(many(size, `"a":{}`), "[]") + "}" },
}

// deep returns values in each other, no deeper than permitted, side by side.
func deep(size int, open, inner, end string) string {
	depth := min(9000, (size-10)/len(open+end))
	one := strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
	return many(size, one)
}

// many returns a list of equal elements; %08d in them is their number.
func many(size int, element string) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; i == 0 || b.Len()+len(element)+2 < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		if strings.Contains(element, "%") {
			fmt.Fprintf(&b, element, i)
		} else {
			b.WriteString(element)
		}
	}
	return b.String() + "]"
}

func objectOf(value string) string { return `{"kind":"A","apiVersion":"v1","a":` + value + `}` }

// reads are the ways to read the value of a field.
var reads = map[string]func(l Limits, value string) error{
	"Decode": func(l Limits, value string) error {
		_, err := l.Decode([]byte(objectOf(value)))
		return err
	},
	"DecodeLazy": func(l Limits, value string) error {
		_, err := l.DecodeLazy([]byte(objectOf(value)))
		return err
	},
	"ListDecoder.Next": func(l Limits, value string) error {
		return readAll(l.NewListDecoder(strings.NewReader(`{"kind":"AList","apiVersion":"v1","items":[` + objectOf(value) + `]}`)).Next)
	},
	"ListDecoder.NextLazy": func(l Limits, value string) error {
		return readAll(l.NewListDecoder(strings.NewReader(`{"kind":"AList","apiVersion":"v1","items":[` + objectOf(value) + `]}`)).NextLazy)
	},
	"ListDecoder.Next, interning": func(l Limits, value string) error {
		list := strings.NewReader(`{"kind":"AList","apiVersion":"v1","items":[` + objectOf(value) + `]}`)
		return readAll(l.NewListDecoder(jsonread.NewInterner().Source(list)).Next)
	},
	"ListDecoder.Next, in the list's head": func(l Limits, value string) error {
		return readAll(l.NewListDecoder(strings.NewReader(`{"kind":"AList","apiVersion":"v1","metadata":` + value + `,"items":[]}`)).Next)
	},
	"WatchDecoder.Next": func(l Limits, value string) error {
		_, err := l.NewWatchDecoder(strings.NewReader(`{"type":"ADDED","object":` + objectOf(value) + `}`)).Next()
		return err
	},
	"WatchDecoder.NextLazy": func(l Limits, value string) error {
		_, err := l.NewWatchDecoder(strings.NewReader(`{"type":"ADDED","object":` + objectOf(value) + `}`)).NextLazy()
		return err
	},
	"WatchDecoder.Next, in another field": func(l Limits, value string) error {
		_, err := l.NewWatchDecoder(strings.NewReader(`{"a":` + value + `,"type":"ADDED","object":` + objectOf(`0`) + `}`)).Next()
		return err
	},
}

func readAll[T any](next func() (*T, error)) error {
	for {
		if _, err := next(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// allocated returns the bytes that f allocates, which are at least those that it holds at any time.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc) //nolint:gosec // less than the memory of this machine
}

// maxGarbage is the ratio of all that is allocated, copies and garbage included, to the memory that counts.
const maxGarbage = 4

func TestLimits_BoundMemory(t *testing.T) {
	race.Skip(t)
	const limit, size = 2 << 20, 3 << 17 // of JSON, more than an eighth
	for name, shape := range shapes {
		value := shape(size)
		for read, f := range reads {
			var err error
			allocated := allocated(func() { err = f(Limits{Object: limit}, value) })
			assert.Equal(t, &LimitError{Limit: limit}, err, "%s, %s", read, name)
			assert.Less(t, allocated, int64(maxGarbage*limit+maxGarbage*len(value)), "%s, %s", read, name)
		}
	}
}

// TestLimits_AcceptWhatServersStore reads 3 MiB, an API server's limit of requests, in a scale of 1:32.
func TestLimits_AcceptWhatServersStore(t *testing.T) {
	race.Skip(t)
	const scale = 32
	for name, shape := range shapes {
		value := shape(3 << 20 / scale)
		for read, f := range reads {
			assert.NoError(t, f(Limits{Object: limits.DefaultObject / scale}, value), "%s, %s", read, name)
		}
	}
}

// TestLimits_LazyAsFull finds the smallest limit of each shape, for objects that are decoded and not.
func TestLimits_LazyAsFull(t *testing.T) {
	for name, shape := range shapes {
		value := shape(1000)
		smallest := map[string]int64{}
		for read, f := range reads {
			if strings.Contains(read, ", in ") {
				continue
			}
			from := strings.Split(read, ".")[0]
			limit := int64(sort.Search(1<<20, func(limit int) bool { return limit > 0 && f(Limits{Object: int64(limit)}, value) == nil }))
			assert.Contains(t, []int64{0, limit}, smallest[strings.TrimSuffix(from, "Lazy")], "%s, %s", read, name)
			smallest[strings.TrimSuffix(from, "Lazy")] = limit
		}
	}
}

func TestLimits_ErrorOfBrokenInput(t *testing.T) {
	race.Skip(t)
	values := []string{many(100, "{}") + ",", `[0,0,0,0,0,0,0,0,0,0,x]`, `[x,0,0,0,0,0,0,0,0,0]`, `["` + strings.Repeat("x", 100) + "\\x", `{"b":{x`, `{"name"x`, `{"b":{}x`}
	whole := `{"b":{"c":[1,2,"text",{}]}}`
	for i := range whole {
		values = append(values, whole[:i]+"\x00")
	}
	for _, value := range values {
		for limit := range int64(2000) {
			text := objectOf(value)
			for _, text := range []string{text, strings.TrimRight(text, "\x00}")} {
				_, err := Limits{Object: limit + 1}.Decode([]byte(text))
				_, lazyErr := Limits{Object: limit + 1}.DecodeLazy([]byte(text))
				require.Equal(t, err, lazyErr, "%s, limit %d", text, limit)
			}
		}
	}
}

func TestLimits_EndlessInput(t *testing.T) {
	race.Skip(t)
	for _, text := range []string{"x", `\n`, "\xff", "1", "1,", "{},", "[", `{"":`, " "} {
		for _, start := range []string{`"`, `[`, `{"a":`, `{"`} {
			for _, next := range []func(d *ListDecoder) error{
				func(d *ListDecoder) error { return readAll(d.Next) },
				func(d *ListDecoder) error { return readAll(d.NextLazy) },
			} {
				begun := false
				chunk := strings.Repeat(text, 1000)
				endless := &endlessly{n: 1 << 30, text: func(int) string {
					if !begun {
						begun = true
						return `{"kind":"AList","apiVersion":"v1","items":[{"a":` + start
					}
					return chunk
				}}
				var err error
				allocated := allocated(func() { err = next(Limits{Object: 1 << 20}.NewListDecoder(io.LimitReader(endless, 64<<20))) })
				assert.Error(t, err)
				assert.Less(t, allocated, int64(8<<20), "%s%s…: %v", start, text, err)
			}
		}
	}
}

func TestLimits_ListsOfAnyLength(t *testing.T) {
	for _, item := range []string{`{"metadata":{"name":"%08d"}}`, `{"kind":"A","apiVersion":"v1","metadata":{"name":"%08d"}}`} {
		list := `{"kind":"AList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":` + many(1<<20, item) + `}`
		small := Limits{Object: 4 << 10, Page: 1 << 20}
		assert.NoError(t, readAll(small.NewListDecoder(strings.NewReader(list)).Next))
		assert.NoError(t, readAll(small.NewListDecoder(strings.NewReader(list)).NextLazy))

		tooLong := &LimitError{Limit: small.Page, IsPage: true}
		assert.Equal(t, tooLong, readAll(small.NewPageDecoder(strings.NewReader(list)).Next))
		assert.Equal(t, tooLong, readAll(small.NewPageDecoder(strings.NewReader(list)).NextLazy))

		noLimits := Limits{Object: -1, Page: -1}
		assert.NoError(t, readAll(noLimits.NewPageDecoder(strings.NewReader(list)).Next))
		assert.NoError(t, readAll(noLimits.NewPageDecoder(strings.NewReader(list)).NextLazy))
	}
}

func TestLimits_ItemsThatWaitForTheKind(t *testing.T) {
	list := `{"items":` + many(1<<16, `{}`) + `,"kind":"AList","apiVersion":"v1"}`
	tooLarge := &LimitError{Limit: 1 << 20}
	assert.Equal(t, tooLarge, readAll(Limits{Object: 1 << 20}.NewListDecoder(strings.NewReader(list)).Next))
	assert.Equal(t, tooLarge, readAll(Limits{Object: 1 << 20}.NewListDecoder(strings.NewReader(list)).NextLazy))
	assert.NoError(t, readAll(Limits{Object: 4 << 20}.NewListDecoder(strings.NewReader(list)).Next))
}

// Each item has the list's kind, in a lazy one as its own text.
func TestLimits_LongKind(t *testing.T) {
	kind := strings.Repeat("x", 100<<10)
	for _, list := range []string{
		`{"kind":"` + kind + `","apiVersion":"v1","items":` + many(30000, `{}`) + `}`,
		`{"items":` + many(30000, `{}`) + `,"kind":"` + kind + `","apiVersion":"v1"}`,
	} {
		const page = 16 << 20
		tooLong := &LimitError{Limit: page, IsPage: true}
		full := Limits{Page: page}.NewPageDecoder(strings.NewReader(list))
		lazy := Limits{Page: page}.NewPageDecoder(strings.NewReader(list))
		assert.Equal(t, tooLong, readAll(full.Next))
		assert.Less(t, allocated(func() { assert.Equal(t, tooLong, readAll(lazy.NextLazy)) }), int64(maxGarbage*page))

		tooLarge := &LimitError{Limit: 64 << 10}
		assert.Equal(t, tooLarge, readAll(Limits{Object: tooLarge.Limit}.NewListDecoder(strings.NewReader(list)).NextLazy))
	}
}

func TestLimits_InternedPartsCount(t *testing.T) {
	list := `{"kind":"AList","apiVersion":"v1","items":` + many(1<<16, `{"kind":"A","a":{"b":[1,2,3]}}`) + `}`
	used := func(src io.Reader) int64 {
		d := Limits{}.NewPageDecoder(src)
		require.NoError(t, readAll(d.Next))
		return d.page.size
	}
	interner := jsonread.NewInterner()
	assert.Equal(t, used(strings.NewReader(list)), used(interner.Source(strings.NewReader(list))))
}

// counted returns how much more memory than its length JSON counts.
func counted(t *testing.T, object string) float64 {
	t.Helper()
	d := Limits{}.NewPageDecoder(strings.NewReader(`{"kind":"AList","apiVersion":"v1","items":[` + object + `]}`))
	require.NoError(t, readAll(d.Next))
	return float64(d.page.size) / float64(len(object))
}

// TestLimits_DocumentedFigures compares the figures of the documents with the constants and with what is measured.
func TestLimits_DocumentedFigures(t *testing.T) {
	race.Skip(t)
	worst := 0.0
	pod := counted(t, string(sample(t, "pod.json")))
	for _, shape := range shapes {
		worst = max(worst, counted(t, objectOf(shape(1<<18))))
	}
	const mib = 1 << 20
	figures := map[string][]string{
		"../SECURITY.md": {
			fmt.Sprintf("up to %.1f bytes for one byte", worst),
			fmt.Sprintf("%d MiB for an object, %d GiB for a page", limits.DefaultObject/mib, limits.DefaultPage>>30),
		},
		"../docs/RELIABILITY.md": {
			fmt.Sprintf("%d MiB for an object, an item of a list or an event, and %d GiB for a page", limits.DefaultObject/mib, limits.DefaultPage>>30),
			fmt.Sprintf("an eighth of that, %d MiB and %d MiB", limits.JSON(limits.DefaultObject)/mib, limits.JSON(limits.DefaultPage)/mib),
			fmt.Sprintf("at most %.1f bytes for one byte of JSON; a pod counts %.1f", worst, pod),
			fmt.Sprintf("less than %d times the limit", maxGarbage),
		},
	}
	for file, texts := range figures {
		document, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, text := range texts {
			assert.Contains(t, string(document), text, file)
		}
	}
	assert.LessOrEqual(t, worst*3*mib, float64(limits.DefaultObject), "an API server accepts requests of 3 MiB")
}

type largeElement struct {
	Fill  [60]int64 `json:"-"`
	Name  string    `json:"name"`
	Inner *largeElement
	Map   map[string]largeElement
	List  []largeElement
	Any   any
}

type largeElements struct {
	A []largeElement          `json:"a"`
	B map[string]largeElement `json:"b"`
	C opaqueElements          `json:"c"`
}

// opaqueElements decode themselves.
type opaqueElements struct{ of []largeElement }

func (e *opaqueElements) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &e.of) }

func TestLimits_BoundMemoryOfTypes(t *testing.T) {
	const limit = 8 << 20
	for name, text := range map[string]string{
		"empty elements":  `"a":` + many(1<<18, `{}`),
		"null":            `"a":` + many(1<<18, `null`),
		"mismatches":      `"a":` + many(1<<18, `0`),
		"other case":      `"A":` + many(1<<18, `{}`),
		"map":             `"b":{` + strings.Trim(many(1<<18, `"%08d":{}`), "[]") + `}`,
		"pointers":        `"a":` + deep(1<<18, `{"Inner":`, `{}`, `}`),
		"lists":           `"a":` + many(1<<18, `{"List":[{}]}`),
		"maps":            `"a":` + many(1<<18, `{"Map":{"a":{}}}`),
		"any":             `"a":[{"Any":` + many(1<<18, `{"":0}`) + `}]`,
		"own unmarshaler": `"c":` + many(1<<18, `{}`),
	} {
		lazy, err := Limits{Object: -1}.DecodeLazy([]byte(`{"kind":"A","apiVersion":"v1",` + text + `}`))
		require.NoError(t, err)
		into := &largeElements{}
		allocated := allocated(func() { err = Limits{Object: limit}.Into(lazy, into) })
		assert.Equal(t, &LimitError{Limit: limit}, err, name)
		assert.Less(t, allocated, int64(limit), name)
		assert.Zero(t, *into, name)

		assert.Equal(t, &LimitError{Limit: limit}, Limits{Object: limit}.CheckTyped(lazy.JSON(), into), name)
	}
}

// TestLimits_TypesOfAdmittedSize decodes what is just within the limit.
func TestLimits_TypesOfAdmittedSize(t *testing.T) {
	for name, element := range map[string]string{
		"empty elements": `{}`, "null": `null`, "mismatches": `0`, "pointers": `{"Inner":{}}`, "lists": `{"List":[{}]}`, "maps": `{"Map":{"a":{}}}`, "any": `{"Any":{"":0}}`,
	} {
		const limit = 8 << 20
		lazy := func(n int) *Lazy {
			l, err := Limits{Object: -1}.DecodeLazy([]byte(`{"kind":"A","a":[` + strings.Repeat(element+",", n) + element + `]}`))
			require.NoError(t, err)
			return l
		}
		most := sort.Search(1<<16, func(n int) bool {
			return Limits{Object: limit}.CheckTyped(lazy(n).JSON(), &largeElements{}) != nil
		}) - 1
		require.Greater(t, most, 1000, name)
		l := lazy(most)
		allocated := allocated(func() { _ = Limits{Object: limit}.Into(l, &largeElements{}) })
		t.Logf("%s: allocated %.1f of the limit", name, float64(allocated)/limit)
		assert.Less(t, allocated, int64(maxGarbage*limit), name)
	}
}
