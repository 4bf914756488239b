//go:build unix

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"slices"
	"strconv"

	"github.com/anykind/anykind/unstructured"
)

// builder makes objects from JSON at the lowest known cost. The JSON is valid, without white space, as sent by API servers, and
// each object is in memory as a whole. Therefore no value is checked or continues in a second buffer. The objects are equal to
// our decoder's: maps and lists of the right size, and most short strings made once.
type builder struct {
	data     []byte
	pos      int
	chunk    []byte // of a list
	members  []builtMember
	elements []any
	scratch  []byte // the last string with escape sequences
	names    [builderSlots]string
	values   [builderSlots]any
	shared   map[string]any // maps, lists and strings by their JSON, for sharing equal values; nil for no sharing
}

type builtMember struct {
	name  string
	value any
}

// build returns the object in data.
func (b *builder) build(data []byte) map[string]any {
	b.data = data
	b.pos = 0
	return b.object()
}

// buildList reads a list with items of at most longestItem bytes, calls each with every item and returns the list's metadata. It
// buffers 2 * longestItem of the input, so that the garbage collector runs as often as with our decoder.
func (b *builder) buildList(src io.Reader, apiVersion, kind string, each func(*unstructured.Object)) (meta map[string]any, err error) {
	b.chunk = b.chunk[:0]
	if err := b.fill(src); err != nil {
		return nil, err
	}
	for b.pos++; b.data[b.pos] != '}'; b.skipComma() {
		name := b.name()
		b.pos++ // the colon
		if name != "items" {
			if value, isObject := b.value().(map[string]any); isObject {
				meta = value
			}
			continue
		}
		for b.pos++; b.data[b.pos] != ']'; b.skipComma() {
			item := b.object()
			item["apiVersion"] = apiVersion
			item["kind"] = kind
			each(&unstructured.Object{Object: item})
			if len(b.data)-b.pos < longestItem {
				b.chunk = b.chunk[:copy(b.chunk, b.data[b.pos:])]
				if err := b.fill(src); err != nil {
					return nil, err
				}
			}
		}
		b.pos++
	}
	return meta, nil
}

const longestItem = 32 << 10

// fill reads until the chunk is full or the input ends.
func (b *builder) fill(src io.Reader) error {
	b.chunk = slices.Grow(b.chunk, 2*longestItem-len(b.chunk))
	n, err := io.ReadFull(src, b.chunk[len(b.chunk):2*longestItem])
	b.chunk = b.chunk[:len(b.chunk)+n]
	b.data = b.chunk
	b.pos = 0
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil
	}
	return err
}

// value returns the value at the position.
func (b *builder) value() any {
	switch b.data[b.pos] {
	case '"':
		return b.boxedString()
	case '{':
		return b.object()
	case '[':
		return b.list()
	case 't':
		b.pos += len("true")
		return true
	case 'f':
		b.pos += len("false")
		return false
	case 'n':
		b.pos += len("null")
		return nil
	default:
		return b.number()
	}
}

func (b *builder) object() map[string]any {
	base := len(b.members)
	start := b.pos
	for b.pos++; b.data[b.pos] != '}'; {
		name := b.name()
		b.pos++ // the colon
		b.members = append(b.members, builtMember{name, b.value()})
		b.skipComma()
	}
	b.pos++
	read := b.members[base:]
	object := make(map[string]any, len(read))
	for i := range read {
		object[read[i].name] = read[i].value
	}
	b.members = b.members[:base]
	equal, _ := b.share(start, object).(map[string]any)
	return equal
}

// share returns the first value with the same JSON, from start to the position. It is v if there is no earlier value.
func (b *builder) share(start int, v any) any {
	if b.shared == nil {
		return v
	}
	text := b.data[start:b.pos]
	if equal, found := b.shared[string(text)]; found {
		return equal
	}
	b.shared[string(text)] = v
	return v
}

func (b *builder) list() []any {
	base := len(b.elements)
	start := b.pos
	for b.pos++; b.data[b.pos] != ']'; {
		b.elements = append(b.elements, b.value())
		b.skipComma()
	}
	b.pos++
	list := make([]any, len(b.elements)-base)
	copy(list, b.elements[base:])
	b.elements = b.elements[:base]
	equal, _ := b.share(start, list).([]any)
	return equal
}

func (b *builder) skipComma() {
	if b.data[b.pos] == ',' {
		b.pos++
	}
}

// text returns the bytes between the quotes of the string at the position.
func (b *builder) text() []byte {
	start := b.pos + 1
	end := start + bytes.IndexByte(b.data[start:], '"')
	if bytes.IndexByte(b.data[start:end], '\\') < 0 {
		b.pos = end + 1
		return b.data[start:end]
	}
	b.scratch = b.scratch[:0]
	for end = start; b.data[end] != '"'; end++ {
		c := b.data[end]
		if c == '\\' {
			end++
			if c = b.data[end]; c != '"' && c != '\\' {
				return b.unquoted(start - 1)
			}
		}
		b.scratch = append(b.scratch, c)
	}
	b.pos = end + 1
	return b.scratch
}

// unquoted returns the text of the string at index start, which has rare escape sequences.
func (b *builder) unquoted(start int) []byte {
	end := start + 1
	for ; b.data[end] != '"'; end++ {
		if b.data[end] == '\\' {
			end++
		}
	}
	b.pos = end + 1
	var text string
	_ = json.Unmarshal(b.data[start:b.pos], &text) // valid
	return []byte(text)
}

const (
	builderSlots = 4096
	longestShort = 48
)

// slot returns the slot of a short string.
func slot(text []byte) uint64 {
	x := uint64(len(text))
	n := len(text)
	switch {
	case n >= 8:
		x += binary.LittleEndian.Uint64(text) ^ binary.LittleEndian.Uint64(text[n-8:])*0x9E3779B97F4A7C15
	case n >= 4:
		x += uint64(binary.LittleEndian.Uint32(text)) ^ uint64(binary.LittleEndian.Uint32(text[n-4:]))<<32
	default:
		x += uint64(text[0])<<8 | uint64(text[n/2])<<16 | uint64(text[n-1])<<24
	}
	return x * 0xD6E8FEB86659FD93 >> 52
}

func (b *builder) name() string {
	text := b.text()
	if n := len(text); n == 0 || n > longestShort {
		return string(text)
	}
	kept := &b.names[slot(text)]
	if *kept != string(text) {
		*kept = string(text)
	}
	return *kept
}

func (b *builder) boxedString() any {
	start := b.pos
	text := b.text()
	switch n := len(text); {
	case b.shared != nil:
		return b.share(start, string(text))
	case n == 0 || n > longestShort:
		return string(text)
	}
	kept := &b.values[slot(text)]
	if s, _ := (*kept).(string); s != string(text) {
		*kept = string(text)
	}
	return *kept
}

func (b *builder) number() any {
	start := b.pos
	var n int64
	negative := b.data[start] == '-'
	if negative {
		b.pos++
	}
	for ; b.data[b.pos] >= '0' && b.data[b.pos] <= '9'; b.pos++ {
		n = n*10 + int64(b.data[b.pos]-'0')
	}
	if c := b.data[b.pos]; (c == ',' || c == '}' || c == ']') && b.pos-start < len("9223372036854775807") {
		if negative {
			n = -n
		}
		return n
	}
	for c := b.data[b.pos]; c != ',' && c != '}' && c != ']'; c = b.data[b.pos] {
		b.pos++
	}
	text := string(b.data[start:b.pos])
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(text, 64) // valid
	return f
}
