//go:build unix

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/unstructured"
)

// TestBuilder_BuildsWhatListDecoderDoes compares the objects of a list that is longer than the builder's buffer.
func TestBuilder_BuildsWhatListDecoderDoes(t *testing.T) {
	const item = `{"metadata":{"name":"web","labels":{"app":"ü","":""},"annotations":{"a":"\"q\" \\ \n ü \/"}},` +
		`"spec":{"n":-12,"big":9223372036854775807,"f":1.5e3,"yes":true,"no":false,"none":null,"empty":{},"list":[1,"two",{"k:{\"a\":\"b\"}":{}},[]]}}`
	list := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"next"},"items":[` + strings.Repeat(item+",", 500) + item + "]}\n"

	var built []*unstructured.Object
	meta, err := (&builder{}).buildList(strings.NewReader(list), "v1", "Pod", func(pod *unstructured.Object) { built = append(built, pod) })
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"resourceVersion": "7", "continue": "next"}, meta)
	decoder := unstructured.NewListDecoder(strings.NewReader(list))
	for i := range 501 {
		want, err := decoder.Next()
		require.NoError(t, err)
		require.Equal(t, want, built[i])
	}
	_, err = decoder.Next()
	require.Equal(t, io.EOF, err)
	assert.Len(t, built, 501)
}

func TestBuilder_SharesEqualParts(t *testing.T) {
	b := &builder{shared: map[string]any{}}
	const object = `{"name":"%","spec":{"list":[{"a":"b"},{"a":"b"}],"more":{"a":"b"}}}`
	first := b.build([]byte(strings.Replace(object, "%", "1", 1)))
	second := b.build([]byte(strings.Replace(object, "%", "2", 1)))
	assert.Equal(t, "1", first["name"])
	assert.Equal(t, "2", second["name"])
	assert.Equal(t, map[string]any{"list": []any{map[string]any{"a": "b"}, map[string]any{"a": "b"}}, "more": map[string]any{"a": "b"}}, first["spec"])
	spec, _ := first["spec"].(map[string]any)
	more, _ := spec["more"].(map[string]any)
	more["a"] = "c"
	assert.Equal(t, map[string]any{"list": []any{more, more}, "more": more}, second["spec"])
}
