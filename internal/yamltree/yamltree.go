// Package yamltree parses YAML into trees with lines, columns and comments, for positions in errors and for editing.
// What a document means is never read from its tree: sigs.k8s.io/yaml decodes it, as kubectl does.
package yamltree

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse parses the first documents of data, at most maxDocuments. An error quotes no value, which may be a secret; line is
// where reading stopped then, which may be the line after the mistake.
func Parse(data []byte, maxDocuments int) (documents []*yaml.Node, line int, err error) {
	reader := &lineReader{rest: data}
	defer func() {
		if recover() != nil { // the YAML library has been known to panic on broken input
			documents, line, err = nil, reader.line, errors.New("its YAML cannot be read")
		}
	}()
	decoder := yaml.NewDecoder(reader)
	for len(documents) < maxDocuments {
		document := &yaml.Node{}
		err := decoder.Decode(document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, reader.line, problemOf(err)
		}
		documents = append(documents, document)
	}
	return documents, 0, nil
}

// problemOf returns err, an error of the library, without its line, which is often that of an enclosing value or missing.
// Messages are fixed texts, except for a missing anchor's: that name is a secret where quotes were forgotten.
func problemOf(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.HasPrefix(text, "unknown anchor") {
		return errors.New("a value starts with * and so refers to an anchor that does not exist (put the value in quotes)")
	}
	if line, rest, found := strings.Cut(text, ": "); found && strings.HasPrefix(line, "line ") {
		text = rest
	}
	return errors.New("its YAML is broken: " + text)
}

// lineReader returns at most one line a Read, so that line is the one that the parser has reached.
type lineReader struct {
	rest     []byte
	line     int
	newlines int
}

func (r *lineReader) Read(buffer []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	r.line = r.newlines + 1
	n := bytes.IndexByte(r.rest, '\n') + 1
	if n == 0 {
		n = len(r.rest)
	}
	n = copy(buffer, r.rest[:n])
	if r.rest[n-1] == '\n' {
		r.newlines++
	}
	r.rest = r.rest[n:]
	return n, nil
}

// At returns the node at a path of field names and list indices, or the last one on the way to it.
func At(node *yaml.Node, path []any) *yaml.Node {
	for _, step := range path {
		for node.Kind == yaml.AliasNode && node.Alias != nil {
			node = node.Alias
		}
		var next *yaml.Node
		switch step := step.(type) {
		case string:
			next = Field(node, step)
		case int:
			if node.Kind == yaml.SequenceNode && step < len(node.Content) {
				next = node.Content[step]
			}
		}
		if next == nil {
			return node
		}
		node = next
	}
	return node
}

// Field returns the value of a mapping's field, or nil. Of several fields of one name the last counts, as in kubectl.
func Field(mapping *yaml.Node, name string) *yaml.Node {
	if i := FieldIndex(mapping, name); i >= 0 {
		return mapping.Content[i+1]
	}
	return nil
}

// FieldIndex returns the index of a field's name in a mapping's content, or -1. See [Field].
func FieldIndex(mapping *yaml.Node, name string) int {
	if mapping != nil && mapping.Kind == yaml.MappingNode {
		for i := len(mapping.Content) - 2; i >= 0; i -= 2 {
			if mapping.Content[i].Value == name {
				return i
			}
		}
	}
	return -1
}
