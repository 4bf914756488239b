// Package manifest reads the objects of files, folders, URLs and streams, with their positions for errors:
//
//	reader := manifest.Reader{Paths: []string{"deploy/", "https://example.com/crds.yaml"}}
//	objects, err := reader.Read(ctx)
//	…
//	err = manifest.Validate(objects, "shop")
//
// Reader.FS reads an embed.FS. [Decode] reads any stream, such as the output of kustomize or helm template. [FromObjects] and
// [Collect] take the objects of a program.
package manifest

import (
	"fmt"
	"io"
	"iter"

	"github.com/anykind/anykind/unstructured"
)

// Object is an object of a manifest with its position.
type Object struct {
	*unstructured.Object
	// Source is the path of the file, its URL without query, STDIN, or the source given to Decode or Collect. It is empty for the
	// objects of FromObjects.
	Source string
	// Document is the number of the document in the source, counted from 1. Without documents it is the number of the object.
	Document int
	// Line is the first line of the document's content, counted from 1, or 0 without documents.
	Line int

	fieldLine func(path ...any) int // nil unless Reader.FieldLines is set
}

// FieldLine returns the line of a field in the source, counted from 1, by a path of names (string) and indexes (int). For a missing
// field it is the line of the field around it. Without [Reader].FieldLines it is Line.
func (o *Object) FieldLine(path ...any) int {
	if o.fieldLine == nil {
		return o.Line
	}
	return o.fieldLine(path...)
}

// Position returns the position of the object for errors: "web.yaml: document 3, line 41". For an object without a document it is
// "generator: object 3", or "object 3" without a Source, or "" without a number.
func (o *Object) Position() string {
	switch {
	case o.Line > 0:
		return fmt.Sprintf("%s: document %d, line %d", o.Source, o.Document, o.Line)
	case o.Document == 0:
		return o.Source
	case o.Source == "":
		return fmt.Sprintf("object %d", o.Document)
	default:
		return fmt.Sprintf("%s: object %d", o.Source, o.Document)
	}
}

// Decode returns the objects of a stream of YAML or JSON up to the first error, and the error. It replaces lists by their items
// (see [unstructured.YAMLDecoder]). source names the stream in errors.
func Decode(source string, in io.Reader) ([]*Object, error) { return decode(source, in, false) }

func decode(source string, in io.Reader, withLines bool) ([]*Object, error) {
	var all []*Object
	for obj, err := range decodeAll(source, in, withLines) {
		if err != nil {
			return all, err
		}
		all = append(all, obj)
	}
	return all, nil
}

// decodeAll yields the objects of a stream up to the first error, and the error.
func decodeAll(source string, in io.Reader, withLines bool) iter.Seq2[*Object, error] {
	return func(yield func(*Object, error) bool) {
		decoder := unstructured.NewYAMLDecoder(in)
		for obj, err := range decoder.All() {
			if err != nil {
				yield(nil, fmt.Errorf("%s: %w", source, err))
				return
			}
			document, line := decoder.Position()
			one := &Object{Object: obj, Source: source, Document: document, Line: line}
			if withLines {
				one.fieldLine = decoder.FieldLines()
			}
			if !yield(one, nil) {
				return
			}
		}
	}
}

// FromObjects returns objects of a program, numbered for errors.
func FromObjects(objects ...*unstructured.Object) []*Object {
	all := make([]*Object, len(objects))
	for i, obj := range objects {
		all[i] = &Object{Object: obj, Document: i + 1}
	}
	return all
}

// Collect returns the objects of an iterator up to the first error, and the error. source names the iterator in errors.
func Collect(source string, objects iter.Seq2[*unstructured.Object, error]) ([]*Object, error) {
	var all []*Object
	for obj, err := range objects {
		if err != nil {
			return all, fmt.Errorf("%s: %w", source, err)
		}
		all = append(all, &Object{Object: obj, Source: source, Document: len(all) + 1})
	}
	return all, nil
}
