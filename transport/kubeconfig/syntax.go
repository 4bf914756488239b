package kubeconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"sync"

	"go.yaml.in/yaml/v3"
)

// parseNode parses the first document of the data into a tree that knows lines, columns and comments, and returns nil
// where there is none. The tree is for positions and for editing only: what a file means is read by
// sigs.k8s.io/yaml, as kubectl reads it. The error is a [*ParseError].
func parseNode(data []byte) (*yaml.Node, error) {
	return nextTree(yaml.NewDecoder(bytes.NewReader(data)), data)
}

// nextTree parses the decoder's next document, and returns nil where there is none.
func nextTree(decoder *yaml.Decoder, data []byte) (root *yaml.Node, err error) {
	defer func() {
		// The YAML library has been known to panic on broken input. The data is a stranger's, and a library returns errors.
		if recover() != nil {
			root, err = nil, &ParseError{Problem: "its YAML cannot be read"}
		}
	}()
	root = &yaml.Node{}
	if err := decoder.Decode(root); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, positionOf(decoder, data, err)
	}
	return root, nil
}

// notYAML explains why YAMLToJSON refused the data. That one's own message may quote a value, so it is not shown.
func notYAML(data []byte, err error) error {
	if _, err := parseNode(data); err != nil {
		return err
	}
	return &ParseError{Line: lineOf(err), Problem: "its YAML means nothing in JSON: " +
		"the names of fields must be plain text, values must fit their tags, and aliases must be few"}
}

// positionOf says where the decoder stopped. The library keeps that, with the column, in its parser and prints a line
// alone, and that not always; so its fields are read by reflection. Where a later version names them differently, the
// error still has the line that was printed.
func positionOf(decoder *yaml.Decoder, data []byte, err error) error {
	wrong := &ParseError{Line: lineOf(err), Problem: "its YAML is broken"}
	state := reflect.ValueOf(decoder).Elem().FieldByName("parser")
	if !state.IsValid() || state.Kind() != reflect.Pointer || state.IsNil() {
		return wrong
	}
	parser, event := inside(state.Elem(), "parser"), inside(state.Elem(), "event")
	problem := inside(parser, "problem")
	if !problem.IsValid() || problem.Kind() != reflect.String {
		return wrong
	}
	offset, hasOffset := number(parser, "problem_offset")
	switch {
	case problem.String() == "":
		// Only aliases are refused by what stands above the parser. Its message quotes the name, which is a secret's
		// text where somebody forgot the quotes.
		wrong.Problem = "a value starts with * and so means an anchor, which does not exist: put it in quotes"
		wrong.Line, wrong.Column = mark(event, "start_mark", wrong.Line)
	case hasOffset && offset > 0 && offset <= len(data):
		wrong.Problem = fmt.Sprintf("its YAML is broken: %s", problem.String())
		before := data[:offset]
		wrong.Line = bytes.Count(before, []byte("\n")) + 1
		wrong.Column = offset - bytes.LastIndexByte(before, '\n')
	default:
		// The parser's own messages are fixed texts.
		wrong.Problem = fmt.Sprintf("its YAML is broken: %s", problem.String())
		wrong.Line, wrong.Column = mark(parser, "problem_mark", wrong.Line)
	}
	return wrong
}

// mark reads a position that counts from 0.
func mark(in reflect.Value, name string, otherwise int) (line, column int) {
	at := inside(in, name)
	line, hasLine := number(at, "line")
	column, hasColumn := number(at, "column")
	if !hasLine || !hasColumn {
		return otherwise, 0
	}
	return line + 1, column + 1
}

func inside(v reflect.Value, name string) reflect.Value {
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}

func number(v reflect.Value, name string) (int, bool) {
	found := inside(v, name)
	if !found.IsValid() || !found.CanInt() {
		return 0, false
	}
	return int(found.Int()), true
}

var printedLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bline (\d+):`)
})

// lineOf finds the line that the YAML library printed, and 0 where it printed none.
func lineOf(err error) int {
	match := printedLine().FindStringSubmatch(err.Error())
	if match == nil {
		return 0
	}
	line, err := strconv.Atoi(match[1])
	if err != nil {
		return 0
	}
	return line
}
