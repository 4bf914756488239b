package unstructured

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/jsonread"
)

// YAMLDecoder reads the objects of a stream of YAML or JSON documents, such as a file for kubectl apply -f. It holds a single
// document in memory. It is not safe for concurrent use.
type YAMLDecoder struct {
	documents documentReader
	count     int        // documents read or tried, counting each JSON object in a row
	rest      document   // the rest of the document behind a JSON object
	line      int        // first line of the last document with an object
	items     []*Object  // of a list, still to be returned
	positions *positions // of the last document
	item      int        // number of the last object in its document, counted from 0
	err       error      // returned behind the items
}

// NewYAMLDecoder returns a decoder of the documents in r. The caller closes r.
func NewYAMLDecoder(r io.Reader) *YAMLDecoder {
	return &YAMLDecoder{documents: documentReader{src: bufio.NewReader(r)}}
}

// Next reads the next object. It returns io.EOF itself at the end of the stream.
//
// A document begins at a line ---, and ends at the next such line or at a line "...". Empty and null documents are skipped, as
// are documents with comments only. A JSON document is read as JSON, and may contain several objects in a row. All remaining
// documents are read by sigs.k8s.io/yaml, like in kubectl: YAML 1.1, with yes and on as true. The result equals [Decode]'s
// for the same JSON: integers are exact. Windows line ends and a byte order mark are accepted.
//
// Next flattens lists (any kind ending in List with items), up to 8 levels deep. An item of a PodList without kind and apiVersion
// is a Pod of the list's apiVersion. The list's own metadata is dropped. kubectl rejects nested lists.
//
// An error begins with the document's number and the line in the whole stream, both counted from 1: "document 3, line 41: …". For
// broken syntax the line is the parser's, at or next to the error. Next rejects everything that Decode rejects, such as an object
// without a kind (reported at the object's first line), and values other than objects. Duplicate fields are rejected, too.
// kubectl accepts them and loses a value, but YAML forbids them (https://yaml.org/spec/1.2.2/#3213-node-comparison). Aliases may
// add at most 10 MiB to a document. Errors quote only apiVersion and name, because values may be secret. After an error Next
// returns the same error again.
func (d *YAMLDecoder) Next() (*Object, error) {
	for len(d.items) == 0 && d.err == nil {
		d.items, d.err = d.next()
	}
	if len(d.items) == 0 {
		d.rest = document{}
		return nil, d.err
	}
	first := d.items[0]
	d.items[0] = nil
	d.items = d.items[1:]
	d.item++
	return first, nil
}

// All returns an iterator over the objects of Next. An error is yielded once, as the last element; the end of the stream yields
// nothing. After a break, reading can continue with Next or All.
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

// Position returns the number and the first line of content of the last object's document, both counted from 1 as in errors.
// Items of a list have the list's position.
func (d *YAMLDecoder) Position() (document, line int) { return d.count, d.line }

// next reads the next document with content. It returns its object, or the items of a list. Items may come with an error behind
// them.
func (d *YAMLDecoder) next() (objs []*Object, err error) {
	for {
		one := d.rest
		isMore := len(d.rest.text) > 0
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
		d.item = -1
		d.positions.object = m
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

// object reads a document. It returns the document's first line, or the line of the error. m is nil for a document without an
// object.
func (d *YAMLDecoder) object(one document, isJSON bool) (m map[string]any, line int, err error) {
	content := one.content()
	d.positions = newPositions(one)
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
	d.positions = newPositions(document{text: content.text[:size], line: content.line})
	r := jsonread.Borrow(content.text)
	defer r.Release()
	if name, found := duplicateField(r); found {
		return nil, content.from(int(r.Offset())).line, fmt.Errorf("the field %q is there twice", name)
	}
	return m, content.line, nil
}

// readJSON reads the object at the beginning of text. It returns the size of the object, or the offset of the error.
func readJSON(text []byte) (m map[string]any, size int, err error) {
	r := jsonread.Borrow(text)
	defer r.Release()
	m, err = r.Object()
	return m, int(min(r.Offset(), int64(len(text)))), err
}

// EncodeYAML writes objs as YAML documents, separated by ---. Fields are sorted like in sigs.k8s.io/yaml and kubectl.
// [YAMLDecoder] reads the objects back like [Decode] reads the result of [Encode], but flattens lists. EncodeYAML accepts the
// same objects as Encode. It returns the same errors, prefixed with the object's index, counted from 0. Without objs the result
// is empty. Safe for concurrent use as long as objs are not changed.
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

// jsonToYAML converts an object's JSON to YAML. It returns the JSON, which is valid YAML, if YAML could not be read back.
func jsonToYAML(data []byte) []byte {
	isMerge := bytes.Contains(data, []byte(`"<<":`)) // unquoted, << would merge a map
	text, err := yaml.JSONToYAML(escapeForYAML(data))
	// YAML has additional limits, such as 1024 characters for a name. A last text in lines may end in U+2028, without a line end.
	if err != nil || isMerge || !bytes.HasSuffix(text, []byte("\n")) {
		return append(data, '\n')
	}
	return text
}

// escapeForYAML escapes the characters with a different meaning in YAML: control characters, line ends, byte order marks.
func escapeForYAML(data []byte) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(data); {
		c := rune(data[i])
		size := 1
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
