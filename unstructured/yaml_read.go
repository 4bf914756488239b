package unstructured

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	ky "sigs.k8s.io/yaml"
)

// readYAML reads a non-JSON document. A null is nil.
//
// sigs.k8s.io/yaml defines the meaning of a document, but has lines only for broken syntax, may quote values and expands aliases
// before their size is known. The document is therefore parsed into a yaml.Node tree first: it has lines and does not expand
// aliases.
func readYAML(one document) (m map[string]any, line int, err error) {
	defer func() {
		if recover() != nil { // the YAML libraries have been known to panic on broken input
			m = nil
			line = one.content().line
			err = errors.New("the YAML cannot be read")
		}
	}()
	root, at, err := parseTree(one.text)
	if err != nil {
		return nil, one.line + at - 1, err
	}
	if root == nil || root.ShortTag() == "!!null" && root.Kind == yaml.ScalarNode {
		return nil, 0, nil
	}
	tree := yamlChecker{line: root.Line}
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

// parseTree parses text as a single document; at is the line of an error. The root of an empty document is nil.
func parseTree(text []byte) (root *yaml.Node, at int, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var tree, second yaml.Node
	if err := decoder.Decode(&tree); err == io.EOF {
		return nil, 0, nil
	} else if err != nil {
		at, err = syntaxError(text, err)
		return nil, at, err
	}
	if err := decoder.Decode(&second); err != io.EOF {
		// sigs.k8s.io/yaml would drop the second document. A lone carriage return ends a YAML line and may separate documents.
		at = max(second.Line, 1)
		if err != nil {
			at, _ = syntaxError(text, err)
		}
		return nil, at, errors.New("there is more behind the end of the document")
	}
	if len(tree.Content) == 0 {
		return nil, 0, nil
	}
	return tree.Content[0], 0, nil
}

// parserProblems are the errors of the YAML parser with lines counted from 0. The scanner's lines are counted from 1.
var parserProblems = []string{"<", "key", "node content", "'-' indicator", "','"}

// syntaxError returns the line and the reason of an error of the YAML library, such as "yaml: line 3: did not find expected key".
// If the error has no line, text is searched.
func syntaxError(text []byte, err error) (line int, reason error) {
	problem := strings.TrimPrefix(err.Error(), "yaml: ")
	if n, scanErr := fmt.Sscanf(problem, "line %d:", &line); n == 1 && scanErr == nil {
		_, problem, _ = strings.Cut(problem, ": ")
		if expected, found := strings.CutPrefix(problem, "did not find expected "); found && slices.ContainsFunc(parserProblems, func(prefix string) bool { return strings.HasPrefix(expected, prefix) }) {
			line++
		}
		return line, fmt.Errorf("the YAML is broken: %s", problem)
	}
	at := bytes.IndexFunc(text, func(c rune) bool { return c == utf8.RuneError || unicode.IsControl(c) && !unicode.IsSpace(c) })
	reason = fmt.Errorf("the YAML is broken: %s", problem)
	if name, found := strings.CutPrefix(problem, "unknown anchor '"); found {
		// The name is not quoted: it may be part of an unquoted secret.
		name, _, _ = strings.Cut(name, "'")
		at = bytes.Index(text, []byte("*"+name))
		reason = errors.New("a value with a * in front is an alias, and its anchor is missing: put the value in quotes")
	}
	return bytes.Count(text[:max(at, 0)], []byte("\n")) + 1, reason
}

// notJSONReason returns the error for valid YAML without a JSON form. YAMLToJSON's text is kept only if it quotes no value.
func notJSONReason(err error) error {
	text := err.Error()
	for _, quoting := range []string{"cannot decode", "invalid map key", "anchor", "unsupported", "`"} {
		if strings.Contains(text, quoting) {
			return errors.New("the YAML means nothing in JSON: it has no .inf or .nan, and a value must fit its tag")
		}
	}
	return fmt.Errorf("the YAML cannot be read: %s", strings.TrimPrefix(text, "yaml: "))
}
