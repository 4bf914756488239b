package discovery

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"unsafe"

	jsoniter "github.com/json-iterator/go"
	"github.com/modern-go/reflect2"
)

// repeated is text that a discovery document says over and over, and repeatedList a list of such: each is kept once
// for a document. With 2,000 resources this saves three quarters of what reading it allocates.
type (
	repeated     string
	repeatedList []string
)

// unmarshalRepetitive is codec.Unmarshal for documents that hold repeated text.
func unmarshalRepetitive(body []byte, into any) error {
	iterator := repetitive.BorrowIterator(body)
	defer repetitive.ReturnIterator(iterator)
	iterator.Attachment = &repetitions{
		texts: map[string]string{}, lists: map[string][]string{}, escaped: bytes.IndexByte(body, '\\') >= 0,
	}
	defer func() { iterator.Attachment = nil }()
	iterator.ReadVal(into)
	if iterator.Error == nil {
		// At the end of the input this fails with io.EOF.
		if iterator.WhatIsNext(); iterator.Error == nil {
			iterator.ReportError("end", "something follows the document")
		}
	}
	if errors.Is(iterator.Error, io.EOF) {
		return nil
	}
	return iterator.Error
}

var repetitive = func() jsoniter.API {
	api := jsoniter.Config{CaseSensitive: true}.Froze()
	api.RegisterExtension(jsoniter.DecoderExtension{
		reflect2.Type2(reflect.TypeFor[repeated]()):     textDecoder{},
		reflect2.Type2(reflect.TypeFor[repeatedList]()): listDecoder{},
	})
	return api
}()

// repetitions are the texts and lists of one document.
type repetitions struct {
	texts map[string]string
	lists map[string][]string
	key   []byte
	// escaped says that some text of the document has escape sequences: then each is decoded before it is looked up.
	escaped bool
}

func (r *repetitions) text(b []byte) string {
	if kept, ok := r.texts[string(b)]; ok {
		return kept
	}
	s := string(b)
	r.texts[s] = s
	return s
}

type textDecoder struct{}

// Decode implements jsoniter.ValDecoder.
func (textDecoder) Decode(ptr unsafe.Pointer, it *jsoniter.Iterator) {
	known, _ := it.Attachment.(*repetitions)
	if it.ReadNil() {
		return
	}
	if known.escaped {
		*(*repeated)(ptr) = repeated(known.text([]byte(it.ReadString())))
		return
	}
	*(*repeated)(ptr) = repeated(known.text(it.ReadStringAsSlice()))
}

type listDecoder struct{}

// Decode implements jsoniter.ValDecoder.
func (listDecoder) Decode(ptr unsafe.Pointer, it *jsoniter.Iterator) {
	known, _ := it.Attachment.(*repetitions)
	if it.ReadNil() {
		return
	}
	if known.escaped {
		list := []string{}
		for it.ReadArray() {
			list = append(list, known.text([]byte(it.ReadString())))
		}
		*(*repeatedList)(ptr) = list
		return
	}
	known.key = known.key[:0]
	size := 0
	for it.ReadArray() {
		// Without escape sequences no text holds a line break.
		known.key = append(append(known.key, it.ReadStringAsSlice()...), '\n')
		size++
	}
	*(*repeatedList)(ptr) = known.list(size)
}

// list is the list of the texts in key.
func (r *repetitions) list(size int) []string {
	if kept, ok := r.lists[string(r.key)]; ok {
		return kept
	}
	list := make([]string, 0, size)
	start := 0
	for i, c := range r.key {
		if c == '\n' {
			list = append(list, r.text(r.key[start:i]))
			start = i + 1
		}
	}
	r.lists[string(r.key)] = list
	return list
}
