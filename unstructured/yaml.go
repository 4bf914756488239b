package unstructured

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"

	"github.com/anykind/anykind/internal/jsonread"
	"sigs.k8s.io/yaml"
)

// YAMLDecoder reads the objects of a stream of YAML or JSON documents, such as a file for kubectl apply -f, one by
// one. It holds one document at a time. One goroutine at a time.
type YAMLDecoder struct {
	documents documentReader
	count     int       // documents read or tried; each JSON object in a row is one
	rest      document  // that is behind a JSON object in its document
	line      int       // at which the last document with an object begins
	items     []*Object // of a list, that have not been returned
	err       error     // behind them
}

// NewYAMLDecoder returns a decoder of the documents in r, which the caller closes.
func NewYAMLDecoder(r io.Reader) *YAMLDecoder {
	return &YAMLDecoder{documents: documentReader{src: bufio.NewReader(r)}}
}

// Next reads the next object. It returns io.EOF itself behind the last.
//
// Documents begin at a line ---, and end at one or at a line "...". Those that are empty, null or only comments are
// skipped. A document of JSON is read as JSON, and may be several objects in a row; every other is read by
// sigs.k8s.io/yaml, as kubectl does: YAML 1.1, in which yes and on are true. The result is what [Decode] returns for
// the JSON: integers are exact. Line ends may be Windows', and a byte order mark may come first.
//
// Of a list, an object of kind List, PodList or another that ends in List and has items, Next returns the items, one by
// one, and of lists among them theirs, up to 8 lists in each other. An item of a PodList without kind and apiVersion is a
// Pod of the list's apiVersion. The list's own metadata is left out. kubectl rejects a list among the items of another.
//
// An error begins with the document's number and the line in the whole stream, both counted from 1: "document 3, line
// 41: …"; for broken syntax the line is the parser's, at or next to the error. Rejected are what Decode rejects, such as
// an object without a kind (whose line is the object's first), values that are no objects and, though kubectl accepts them,
// objects that have a field twice, which YAML forbids (https://yaml.org/spec/1.2.2/#3213-node-comparison), since one of
// the two would be lost. Aliases may add 10 MiB to a document and no more. No error quotes a value, which may be secret,
// but apiVersion and name. After an error Next returns the same error again.
func (d *YAMLDecoder) Next() (*Object, error) {
	for len(d.items) == 0 && d.err == nil {
		d.items, d.err = d.next()
	}
	if len(d.items) == 0 {
		d.rest = document{}
		return nil, d.err
	}
	first := d.items[0]
	d.items[0], d.items = nil, d.items[1:]
	return first, nil
}

// All returns an iterator over the objects that Next returns. It yields an error once and last, and nothing at the end of
// the stream. A loop that was left can be continued with Next or All.
func (d *YAMLDecoder) All() iter.Seq2[*Object, error] {
	return func(yield func(*Object, error) bool) {
		for {
			obj, err := d.Next()
			if err == io.EOF {
				return
			}
			if !yield(obj, err) || err != nil {
				return
			}
		}
	}
}

// Position returns the number of the document that the last object of [YAMLDecoder.Next] is from, and the line at which
// that document's content begins, both counted from 1 as in errors. Items of a list have the list's position.
func (d *YAMLDecoder) Position() (document, line int) { return d.count, d.line }

// next reads the next document with content and returns its objects: one, or the items of a list, which may come with the
// error behind them.
func (d *YAMLDecoder) next() (objs []*Object, err error) {
	for {
		one, isMore := d.rest, len(d.rest.text) > 0
		d.rest = document{}
		if !isMore {
			if one, err = d.documents.next(); err != nil {
				return nil, err
			}
		}
		d.count++
		m, line, err := d.object(one, isMore)
		if err == nil && m == nil {
			d.count--
			continue
		}
		d.line = line
		if err == nil {
			err = checkType(m)
		}
		if err == nil {
			objs, err = appendItems(nil, m, nil)
		}
		if item, ok := errors.AsType[*listItemError](err); ok {
			line = one.itemLine(item.indexes, line)
		}
		if err != nil {
			err = fmt.Errorf("document %d, line %d: %w", d.count, line, err)
		}
		return objs, err
	}
}

// object reads a document, and returns the line at which it begins, or of the error. A document without an object is nil.
func (d *YAMLDecoder) object(one document, isJSON bool) (m map[string]any, line int, err error) {
	content := one.content()
	if !isJSON && content.text[0] != '{' {
		return readYAML(one)
	}
	m, size, err := readJSON(content.text)
	rest := content.from(size).content()
	switch isMore := len(rest.text) > 0; {
	case !isJSON && (err != nil || isMore && rest.text[0] != '{'):
		return readYAML(one) // YAML has braces, too
	case err != nil:
		return nil, content.from(size).line, err
	}
	d.rest = rest
	r := jsonread.Borrow(content.text)
	defer r.Release()
	if name, found := duplicateField(r); found {
		return nil, content.from(int(r.Offset())).line, fmt.Errorf("the field %q is there twice", name)
	}
	return m, content.line, nil
}

// readJSON reads the object that text begins with, and returns its size or how far it was read.
func readJSON(text []byte) (m map[string]any, size int, err error) {
	r := jsonread.Borrow(text)
	defer r.Release()
	m, err = r.Object()
	return m, int(min(r.Offset(), int64(len(text)))), err
}

// EncodeYAML writes objs as YAML, one document each with --- between them, fields sorted as sigs.k8s.io/yaml and so
// kubectl sort them. What [YAMLDecoder] returns for it is what [Decode] returns for what [Encode] writes, from which it
// differs in form only, or, for a list, its items: it takes the same objects and has the same errors, prefixed with the object's index, counted
// from 0. Without objs it is empty. Safe for concurrent use as long as objs are not changed.
func EncodeYAML(objs ...*Object) ([]byte, error) {
	var out []byte
	for i, obj := range objs {
		data, err := Encode(obj)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", i, err)
		}
		if i > 0 {
			out = append(out, "---\n"...)
		}
		out = append(out, jsonToYAML(data)...)
	}
	return out, nil
}

// jsonToYAML converts an object's JSON to YAML. Where YAML would not be read back, it stays JSON, which is YAML, too.
func jsonToYAML(data []byte) []byte {
	isMerge := bytes.Contains(data, []byte(`"<<":`)) // it would stand without quotes, and mean that a map is merged
	text, err := yaml.JSONToYAML(escapeForYAML(data))
	if err != nil || isMerge { // YAML has limits that JSON has not, such as 1024 characters for a name
		return append(data, '\n')
	}
	return text
}

// escapeForYAML escapes what YAML reads otherwise than JSON does: control characters, line ends, byte order marks.
func escapeForYAML(data []byte) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(data); {
		c, size := rune(data[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRune(data[i:])
		}
		if 0x7f <= c && c <= 0x9f || c == '\u2028' || c == '\u2029' || c == '\ufeff' || c == '\ufffe' || c == '\uffff' {
			out = fmt.Appendf(append(out, data[done:i]...), `\u%04x`, c)
			done = i + size
		}
		i += size
	}
	if done == 0 {
		return data
	}
	return append(out, data[done:]...)
}
