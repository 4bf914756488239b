package unstructured

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	ky "sigs.k8s.io/yaml"
)

// readYAML reads a document that is not JSON. A null is nil.
//
// sigs.k8s.io/yaml says what it means. It knows lines only of broken syntax and may quote values, and what aliases
// come to it finds out by making it; so the document is parsed into a tree first, which tells lines and expands
// nothing.
func readYAML(one document) (m map[string]any, line int, err error) {
	defer func() {
		// The YAML libraries have been known to panic on broken input. It is a stranger's, and a library returns errors.
		if recover() != nil {
			m, line, err = nil, one.content().line, errors.New("the YAML cannot be read")
		}
	}()
	root, at, err := parseTree(one.text)
	if err != nil {
		return nil, one.line + at - 1, err
	}
	if root == nil || root.ShortTag() == "!!null" && root.Kind == yaml.ScalarNode {
		return nil, 0, nil
	}
	tree := yamlTree{line: root.Line}
	if err := tree.check(root); err != nil {
		return nil, one.line + tree.line - 1, err
	}
	first := one.line + root.Line - 1
	data, err := ky.YAMLToJSON(one.text)
	if err != nil {
		return nil, one.line + max(root.Line, lineNotJSON(root)) - 1, notJSONReason(err)
	}
	if m, _, err = readJSON(data); err != nil {
		return nil, first, err
	}
	return m, first, nil
}

// parseTree parses text, which must be one document. Where it cannot, at is the line. An empty document is nil.
func parseTree(text []byte) (root *yaml.Node, at int, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var tree, second yaml.Node
	if err := decoder.Decode(&tree); err == io.EOF {
		return nil, 0, nil
	} else if err != nil {
		at, err = syntaxError(decoder, text, err)
		return nil, at, err
	}
	if err := decoder.Decode(&second); err != io.EOF {
		// sigs.k8s.io/yaml would leave it out. A lone carriage return ends YAML's lines, and so may part documents.
		at = max(second.Line, 1)
		if err != nil {
			at, _ = syntaxError(decoder, text, err)
		}
		return nil, at, errors.New("there is more behind the end of the document")
	}
	if len(tree.Content) == 0 {
		return nil, 0, nil
	}
	return tree.Content[0], 0, nil
}

var printedLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bline (\d+):`)
})

// syntaxError says where the parser stopped and why. It prints a line not always and not always that one; so what it
// knows is read by reflection. Where a later version names that differently, the printed line stays.
func syntaxError(decoder *yaml.Decoder, text []byte, err error) (line int, reason error) {
	line = 1
	if printed := printedLine().FindStringSubmatch(err.Error()); printed != nil {
		if n, err := strconv.Atoi(printed[1]); err == nil {
			line = n
		}
	}
	parser := reflect.ValueOf(decoder).Elem().FieldByName("parser")
	if parser.Kind() != reflect.Pointer || parser.IsNil() {
		return line, errors.New("the YAML is broken")
	}
	state := parser.Elem().FieldByName("parser")
	problem := state.FieldByName("problem").String()
	if problem == "" {
		// Only aliases are refused above the parser. The name is not quoted: where somebody forgot the quotes it is a
		// secret's text.
		event := parser.Elem().FieldByName("event")
		return int(event.FieldByName("start_mark").FieldByName("line").Int()) + 1,
			errors.New("a value begins with * and so means an anchor, which is not there: put it in quotes")
	}
	if offset := int(state.FieldByName("problem_offset").Int()); 0 < offset && offset <= len(text) {
		return bytes.Count(text[:offset], []byte("\n")) + 1, fmt.Errorf("the YAML is broken: %s", problem)
	}
	return int(state.FieldByName("problem_mark").FieldByName("line").Int()) + 1, fmt.Errorf("the YAML is broken: %s", problem)
}

// notJSONReason is why YAMLToJSON refused what could be parsed. Its own text is kept only where it quotes nothing.
func notJSONReason(err error) error {
	text := err.Error()
	for _, quoting := range []string{"cannot decode", "invalid map key", "anchor", "unsupported", "`"} {
		if strings.Contains(text, quoting) {
			return errors.New("the YAML means nothing in JSON: it has no .inf or .nan, and a value must fit its tag")
		}
	}
	return fmt.Errorf("the YAML cannot be read: %s", strings.TrimPrefix(text, "yaml: "))
}
