// Package yamltree parses YAML into trees with lines, columns and comments, for positions in errors and for editing. The meaning
// of a document is never read from its tree: sigs.k8s.io/yaml decodes it, like in kubectl.
package yamltree

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse parses the first documents of data, at most maxDocuments. An error quotes no value, because values may be secrets. Its
// line is the parser's position, and may be the line after the mistake.
func Parse(data []byte, maxDocuments int) (documents []*yaml.Node, line int, err error) {
	reader := &lineReader{rest: data}
	defer func() {
		if recover() != nil { // the YAML library has been known to panic on broken input
			documents = nil
			line = reader.line
			err = errors.New("its YAML cannot be read")
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

// problemOf returns an error of the library without its line: the line is often missing or an enclosing value's. Messages are
// fixed texts, except for a missing anchor's name: the name may be a secret without quotes.
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

// lineReader returns at most a line for each Read. line is therefore the parser's position.
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

// At returns the node at a path of field names and list indices, or the last existing node on the path.
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

// Field returns the value of a mapping's field, or nil. The last of several fields with the same name wins, as in kubectl.
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
