package unstructured

import (
	"bytes"
	"fmt"
	"io"
)

// YAMLDecoder reads the objects of a stream of YAML or JSON documents, such as a file for kubectl apply -f, one by
// one. It holds one document at a time. One goroutine at a time.
type YAMLDecoder struct {
	split documents
	count int      // objects read or tried
	rest  document // what is behind a JSON object in its document
	err   error
}

// NewYAMLDecoder reads documents from r, which stays the caller's to close.
func NewYAMLDecoder(r io.Reader) *YAMLDecoder {
	return &YAMLDecoder{split: newDocuments(r)}
}

// Next reads the next object. It fails with io.EOF itself behind the last.
//
// Documents begin at a line ---, and end at one or at a line "...". Those that are empty, null or only comments are
// skipped. A document of JSON is read as JSON, and may be several objects in a row; every other is read by
// sigs.k8s.io/yaml, as kubectl does: YAML 1.1, in which yes and on are true. What comes of it is what [Decode] makes of
// the JSON: integers are exact. A list, of kind List or another, is one object. Line ends may be Windows', and a byte
// order mark may come first.
//
// An error begins with the object's number and the line in the whole stream, both counted from 1: "document 3, line
// 41: …". Refused is what Decode refuses, such as an object without a kind (whose line is the object's first), and
// what is not an object; and, though kubectl takes it, a field that an object has twice, for YAML forbids it
// (https://yaml.org/spec/1.2.2/#3213-node-comparison) and one of the two would be lost. Aliases may add 10 MiB to a
// document and no more. No error quotes a value, which may be secret, but apiVersion and name. After an error Next
// gives the same error for ever.
func (d *YAMLDecoder) Next() (*Object, error) {
	if d.err != nil {
		return nil, d.err
	}
	obj, err := d.next()
	if err != nil {
		d.err, d.rest = err, document{}
		return nil, err
	}
	return obj, nil
}

func (d *YAMLDecoder) next() (*Object, error) {
	for {
		one, isMore := d.rest, len(d.rest.text) > 0
		d.rest = document{}
		if !isMore {
			var err error
			if one, err = d.split.next(); err != nil {
				return nil, err
			}
		}
		d.count++
		m, line, err := d.object(one, isMore)
		if err == nil && m == nil {
			d.count--
			continue
		}
		if err == nil {
			if err = checkType(m); err == nil {
				return &Object{Object: m}, nil
			}
		}
		return nil, fmt.Errorf("document %d, line %d: %w", d.count, line, err)
	}
}

// object reads a document, and tells where it begins, or where in it an error is. A document without an object is nil.
func (d *YAMLDecoder) object(one document, isJSON bool) (m map[string]any, line int, err error) {
	content := one.content()
	if !isJSON && content.text[0] != '{' {
		return readYAML(one)
	}
	m, size, err := readJSON(content.text)
	rest := content.from(size).content()
	switch isMore := len(rest.text) > 0; {
	case !isJSON && (err != nil || isMore && rest.text[0] != '{'):
		return readYAML(one) // braces are YAML's, too
	case err != nil:
		return nil, content.from(size).line, err
	}
	d.rest = rest
	if name, offset := twice(content.text[:size]); offset > 0 {
		return nil, content.from(offset).line, fmt.Errorf("the field %q is there twice", name)
	}
	return m, content.line, nil
}

// readJSON reads the object that text begins with, and tells its size or how far it came.
func readJSON(text []byte) (m map[string]any, size int, err error) {
	r := borrowReader(text)
	defer r.release()
	if err = r.findObject(); err == nil {
		m, err = r.object()
	}
	return m, min(r.pos, len(text)), err
}

// A document is a part of a stream.
type document struct {
	text []byte
	line int // of the stream, counted from 1
	skip int // how much of text comes before the first line with content
}

// content is what begins with the first character that is content.
func (d document) content() document {
	rest := d.text[d.skip:]
	return d.from(len(d.text) - len(bytes.TrimLeft(rest, "\ufeff \t\r\n")))
}

func (d document) from(offset int) document {
	return document{text: d.text[offset:], line: d.line + bytes.Count(d.text[:offset], []byte("\n"))}
}
