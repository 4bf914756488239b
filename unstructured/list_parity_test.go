package unstructured

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// oddLists are lists that no Kubernetes server sends.
var oddLists = map[string]string{
	"empty":                       `{"kind":"AList","items":[]}`,
	"null items":                  `{"kind":"AList","items":null}`,
	"no items":                    `{"kind":"AList","apiVersion":"v1"}`,
	"no suffix":                   `{"kind":"A","items":[{}]}`,
	"kind List":                   `{"kind":"List","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1"},{"kind":"Pod"},{"apiVersion":"v1"},{}]}`,
	"items first":                 `{"items":[{"a":1},{"a":2}],"kind":"AList","apiVersion":"v1"}`,
	"kind, items, apiVersion":     `{"kind":"AList","items":[{"a":1},{"kind":"B","apiVersion":"v2"},{"a":2}],"apiVersion":"v1"}`,
	"only items have kinds":       `{"items":[{"kind":"A","apiVersion":"v1"}]}`,
	"no apiVersion":               `{"kind":"AList","items":[{"a":1}]}`,
	"null item":                   `{"kind":"AList","apiVersion":"v1","items":[null]}`,
	"number for an item":          `{"kind":"AList","apiVersion":"v1","items":[{},1]}`,
	"list for an item":            `{"kind":"AList","apiVersion":"v1","items":[[]]}`,
	"items of wrong type":         `{"kind":"AList","apiVersion":"v1","items":{}}`,
	"string for items":            `{"kind":"AList","apiVersion":"v1","items":"a"}`,
	"item's kind of wrong type":   `{"kind":"AList","apiVersion":"v1","items":[{"kind":1},{"kind":1,"apiVersion":"v2"}]}`,
	"item's malformed apiVersion": `{"kind":"AList","apiVersion":"v1","items":[{"apiVersion":"a/b/c"}]}`,
	"malformed apiVersion":        `{"kind":"AList","apiVersion":"a/b/c","items":[{}]}`,
	"escaped names":               `{"\u006bind":"AList","apiVersion":"v1","it\u0065ms":[{}]}`,
	"other case":                  `{"kind":"AList","Items":[{}],"items":[{"a":1}]}`,
	"metadata twice":              `{"kind":"AList","metadata":{"resourceVersion":"1"},"items":[],"metadata":{"continue":"x"}}`,
	"wrong metadata":              `{"kind":"AList","metadata":[1],"items":[]}`,
	"other fields":                `{"kind":"AList","extra":{"a":[1.5]},"items":[{"items":[{"items":[]}]}],"more":null}`,
	"Status":                      `{"kind":"Status","apiVersion":"v1","status":"Failure"}`,
	"items twice":                 `{"kind":"AList","apiVersion":"v1","items":[{"a":1}],"items":[{"a":2}]}`,
	"kind twice":                  `{"kind":"AList","apiVersion":"v1","items":[{"a":1}],"kind":"BList"}`,
	"apiVersion twice":            `{"kind":"AList","apiVersion":"v1","items":[{"a":1}],"apiVersion":"v2"}`,
	"text behind":                 `{"kind":"AList","apiVersion":"v1","items":[{}]} x`,
	"comma behind the items":      `{"kind":"AList","apiVersion":"v1","items":[{},]}`,
	"no kind":                     `{"apiVersion":"v1","items":[{}]}`,
	"a list":                      `[{}]`,
}

// readList reads to the error, which is io.EOF if all is well.
func readList(d *ListDecoder) ([]Object, error) {
	items := []Object{}
	for {
		obj, err := d.Next()
		if err != nil {
			return items, err
		}
		items = append(items, *obj)
	}
}

// assertListParity reads a list here and by apimachinery. The package rejects more than apimachinery: see
// TestListDecoder_StricterThanApimachinery.
func assertListParity(t testing.TB, data []byte) {
	t.Helper()
	var want unstructuredv1.UnstructuredList
	_, _, wantErr := unstructuredv1.UnstructuredJSONScheme.Decode(data, nil, &want)
	d := NewListDecoder(bytes.NewReader(data))
	items, err := readList(d)
	var repeated *duplicateFieldError
	var notList *NotListError
	switch {
	case wantErr != nil:
		assert.NotEqual(t, io.EOF, err, "apimachinery: %v", wantErr)
	case errors.As(err, &repeated):
	case errors.As(err, &notList):
		assert.Empty(t, want.Items)
		assert.False(t, strings.HasSuffix(want.GetKind(), "List"))
		assertIdentical(t, want.Object, notList.Object.Object)
	default:
		require.Equal(t, io.EOF, err)
		assertIdentical(t, want.Object, d.head)
		require.Len(t, items, len(want.Items))
		for i := range items {
			assertIdentical(t, want.Items[i].Object, items[i].Object)
		}
		assert.Equal(t, want.GetResourceVersion(), d.Meta().ResourceVersion)
		assert.Equal(t, want.GetContinue(), d.Meta().Continue)
		assert.Equal(t, want.GetRemainingItemCount(), d.Meta().RemainingItemCount)
	}
}

func TestListDecoder_EqualsApimachinery(t *testing.T) {
	for _, name := range []string{"podlist.json", "widgetlist.json"} {
		t.Run(name, func(t *testing.T) {
			items, err := readList(NewListDecoder(bytes.NewReader(sample(t, name))))
			require.Equal(t, io.EOF, err)
			assert.NotEmpty(t, items)
			assertListParity(t, sample(t, name))
		})
	}
}

func TestListDecoder_OddLists(t *testing.T) {
	for name, list := range oddLists {
		t.Run(name, func(t *testing.T) { assertListParity(t, []byte(list)) })
	}
}

func TestListDecoder_NastyItems(t *testing.T) {
	for name, value := range nastyValues {
		t.Run(name, func(t *testing.T) {
			assertListParity(t, []byte(`{"kind":"AList","apiVersion":"v1","items":[{"value":`+value+`},{}]}`))
			assertListParity(t, []byte(`{"kind":"AList","apiVersion":"v1","items":[`+value+`]}`))
			assertListParity(t, []byte(`{"kind":"AList","apiVersion":"v1","items":`+value+`}`))
		})
	}
	for name, document := range nastyDocuments {
		t.Run(name, func(t *testing.T) { assertListParity(t, []byte(document)) })
	}
}

// Items may be out before the second field is seen, and cannot be taken back. An object that is no list would be an
// empty one.
func TestListDecoder_StricterThanApimachinery(t *testing.T) {
	for name, want := range map[string]string{
		"items twice":      `the list has two fields named "items"`,
		"kind twice":       `the list has two fields named "kind"`,
		"apiVersion twice": `the list has two fields named "apiVersion"`,
		"Status":           "v1 Status is not a list: it has no items",
	} {
		data := []byte(oddLists[name])
		var list unstructuredv1.UnstructuredList
		_, _, err := unstructuredv1.UnstructuredJSONScheme.Decode(data, nil, &list)
		require.NoError(t, err)
		_, err = readList(NewListDecoder(bytes.NewReader(data)))
		assert.EqualError(t, err, want)
	}
}
