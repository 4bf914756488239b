package unstructured

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func listOf(text string) *ListDecoder { return NewListDecoder(strings.NewReader(text)) }

func TestListDecoder_ItemsInOrderThenEOF(t *testing.T) {
	d := NewListDecoder(bytes.NewReader(sample(t, "podlist.json")))
	for i := range 4 {
		obj, err := d.Next()
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("web-%d", i), obj.GetName())
		assert.Equal(t, "Pod", obj.GetKind())
		assert.Equal(t, "v1", obj.GetAPIVersion())
	}
	for range 2 {
		obj, err := d.Next()
		assert.True(t, err == io.EOF, "%v", err)
		assert.Nil(t, obj)
	}
	seven := int64(7)
	assert.Equal(t, metav1.ListMeta{ResourceVersion: "184500", Continue: "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", RemainingItemCount: &seven}, d.Meta())
}

func TestListDecoder_MetaBehindItems(t *testing.T) {
	d := NewListDecoder(bytes.NewReader(sample(t, "widgetlist.json")))
	_, err := d.Next()
	require.NoError(t, err)
	assert.Empty(t, d.Meta())
	_, err = readList(d)
	require.Equal(t, io.EOF, err)
	assert.Equal(t, "9", d.Meta().ResourceVersion)
}

func TestListDecoder_MetaOfWrongTypes(t *testing.T) {
	for metadata, want := range map[string]metav1.ListMeta{
		`null`: {}, `[]`: {}, `{}`: {}, `{"resourceVersion":1,"continue":[],"remainingItemCount":"3","shardInfo":1}`: {},
		`{"resourceVersion":"1","remainingItemCount":1.5}`: {ResourceVersion: "1"},
	} {
		d := listOf(`{"kind":"AList","metadata":` + metadata + `,"items":[]}`)
		_, err := d.Next()
		require.Equal(t, io.EOF, err)
		assert.Equal(t, want, d.Meta(), metadata)
	}
}

func TestListDecoder_MetaWithShardInfo(t *testing.T) {
	for metadata, want := range map[string]string{
		`{"resourceVersion":"7","shardInfo":{"selector":"shardRange(object.metadata.uid, '0x0', '0x8')"}}`: "shardRange(object.metadata.uid, '0x0', '0x8')",
		`{"resourceVersion":"7","shardInfo":{"selector":1}}`:                                               "",
	} {
		d := listOf(`{"kind":"AList","metadata":` + metadata + `,"items":[]}`)
		_, err := d.Next()
		require.Equal(t, io.EOF, err)
		meta := d.Meta()
		assert.Equal(t, "7", meta.ResourceVersion)
		shardInfo := reflect.ValueOf(meta).FieldByName("ShardInfo")
		if !shardInfo.IsValid() {
			t.Skip("this version of apimachinery has no ShardInfo")
		}
		require.False(t, shardInfo.IsNil())
		assert.Equal(t, want, shardInfo.Elem().FieldByName("Selector").String())
	}
}

func TestListDecoder_FieldsInAnyOrder(t *testing.T) {
	fields := []string{`"kind":"AList"`, `"apiVersion":"v1"`, `"metadata":{"resourceVersion":"7"}`, `"items":[{"n":0},{"n":1,"kind":"B"},{"n":2}]`}
	for _, order := range permutations(fields) {
		d := listOf("{" + strings.Join(order, ",") + "}")
		items, err := readList(d)
		require.Equal(t, io.EOF, err, order)
		assert.Equal(t, "7", d.Meta().ResourceVersion)
		assert.Equal(t, []Object{
			{Object: map[string]any{"n": int64(0), "kind": "A", "apiVersion": "v1"}},
			{Object: map[string]any{"n": int64(1), "kind": "B"}},
			{Object: map[string]any{"n": int64(2), "kind": "A", "apiVersion": "v1"}},
		}, items, order)
	}
}

func permutations(of []string) [][]string {
	if len(of) < 2 {
		return [][]string{of}
	}
	var all [][]string
	for i := range of {
		rest := append(append([]string{}, of[:i]...), of[i+1:]...)
		for _, order := range permutations(rest) {
			all = append(all, append([]string{of[i]}, order...))
		}
	}
	return all
}

func TestListDecoder_WithoutItems(t *testing.T) {
	for _, text := range []string{
		`{"kind":"AList","items":[]}`, `{"kind":"AList","items":null}`, `{"kind":"AList"}`, `{"kind":"A","items":[]}`, `{"kind":"A","items":null}`,
	} {
		items, err := readList(listOf(text))
		assert.Equal(t, io.EOF, err, text)
		assert.Empty(t, items)
	}
}

func TestListDecoder_NotListErrorHasObject(t *testing.T) {
	_, err := listOf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":410}`).Next()
	var notList *NotListError
	require.ErrorAs(t, fmt.Errorf("wrapped: %w", err), &notList)
	assert.Equal(t, "Status", notList.Object.GetKind())
	assert.Equal(t, int64(410), notList.Object.Object["code"])
}

func TestListDecoder_CutInput(t *testing.T) {
	for _, name := range []string{"podlist.json", "widgetlist.json"} {
		data := bytes.TrimSpace(sample(t, name))
		for i := range data {
			d := NewListDecoder(bytes.NewReader(data[:i]))
			_, err := readList(d)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%s cut at byte %d", name, i)
		}
	}
}

func TestListDecoder_ItemsBeforeError(t *testing.T) {
	broken := errors.New("broken")
	start := `{"kind":"AList","apiVersion":"v1","items":[{"n":1},{"n":2}`
	for name, r := range map[string]io.Reader{
		"reader fails":      io.MultiReader(strings.NewReader(start), iotest.ErrReader(broken)),
		"fails with data":   iotest.DataErrReader(io.MultiReader(strings.NewReader(start), iotest.ErrReader(broken))),
		"fails in an item":  io.MultiReader(strings.NewReader(start+`,{"n`), iotest.ErrReader(broken)),
		"fails behind it":   io.MultiReader(strings.NewReader(start+`]}`), iotest.ErrReader(broken)),
		"fails at a number": io.MultiReader(strings.NewReader(start+`,{"n":12`), iotest.ErrReader(broken)),
		"fails at an n":     io.MultiReader(strings.NewReader(start+`,{"n":n`), iotest.ErrReader(broken)),
		"fails at \\":       io.MultiReader(strings.NewReader(start+`,{"n":"\`), iotest.ErrReader(broken)),
	} {
		t.Run(name, func(t *testing.T) {
			d := NewListDecoder(r)
			items, err := readList(d)
			assert.Len(t, items, 2)
			assert.ErrorIs(t, err, broken)
			_, again := d.Next()
			assert.Same(t, err, again)
		})
	}
}

// A reader need not return the same error twice.
func TestListDecoder_ReadsNothingAfterError(t *testing.T) {
	broken := errors.New("broken")
	reads := 0
	d := NewListDecoder(readFunc(func(p []byte) (int, error) {
		if reads++; reads > 1 {
			return copy(p, "]}"), nil
		}
		return copy(p, `{"kind":"AList","apiVersion":"v1","items":[{}`), broken
	}))
	items, err := readList(d)
	assert.Len(t, items, 1)
	assert.ErrorIs(t, err, broken)
	assert.Equal(t, 1, reads)
}

func TestListDecoder_ReaderWithoutProgress(t *testing.T) {
	_, err := NewListDecoder(silent{}).Next()
	assert.ErrorIs(t, err, io.ErrNoProgress)
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

func TestListDecoder_Errors(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                      `invalid JSON at byte 0: '[' where a list should begin`,
		`{"kind":"AList","items":{}}`:             `invalid JSON at byte 24: '{' where a list's items should begin`,
		`{"kind":"AList","items":[1]}`:            `the list's items[0] is int64, not an object`,
		`{"kind":"AList","items":[{},"a"]}`:       `the list's items[1] is string, not an object`,
		`{"kind":"AList","items":[{"a":tru}]}`:    `invalid JSON at byte 30: "tru}" is not true`,
		`{"kind":"AList","items":[]}{}`:           `invalid JSON at byte 27: '{' behind the object`,
		`{"kind":"AList","items":[],"items":[]}`:  `the list has two fields named "items"`,
		`{"kind":"AList","kind":"B","items":[]}`:  `the list has two fields named "kind"`,
		`{"kind":"AList","items":null,"items":1}`: `the list has two fields named "items"`,
		``: `JSON input ends early, after byte 0: unexpected EOF`,
	} {
		_, err := readList(listOf(text))
		assert.EqualError(t, err, want, text)
	}
}

func TestListDecoder_WithoutKind(t *testing.T) {
	items, err := readList(listOf(`{"apiVersion":"v1","items":[{"kind":"A","apiVersion":"v1"}]}`))
	assert.Len(t, items, 1)
	assert.True(t, runtime.IsMissingKind(err))
	_, err = readList(listOf(`{"kind":"AList","apiVersion":"a/b/c","items":[]}`))
	assert.ErrorContains(t, err, "invalid apiVersion")
}
