package unstructured

import (
	"fmt"
	"io"

	"github.com/anykind/anykind/internal/sanitize"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Decode reads one object, which must be all of data. A list is read like any other object: its items are under
// "items" in its Object; see [ListDecoder] for reading them one by one.
//
// Integers that fit become int64, other numbers float64; null stays; of fields with one name the last stays; invalid
// UTF-8 becomes U+FFFD; nesting ends at 10000. Nothing in the object points into data. Data that is not an object
// with a kind and a well-formed apiVersion is refused: runtime.IsMissingKind tells if only the kind is missing, and
// errors.Is(err, io.ErrUnexpectedEOF) if data ends early. Safe for concurrent use.
//
// Only errors differ from apimachinery's: it takes a malformed apiVersion for a missing kind, and quotes the whole
// object, secrets and all.
func Decode(data []byte) (*Object, error) {
	r := borrowReader(data)
	defer r.release()
	if err := r.findObject(); err != nil {
		return nil, err
	}
	m, err := r.object()
	if err != nil {
		return nil, err
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	if err := checkType(m); err != nil {
		return nil, err
	}
	return &Object{Object: m}, nil
}

// findObject reads up to the opening brace of an object, which must be what is next.
func (r *reader) findObject() error {
	c, err := r.next()
	if err == nil && c != '{' {
		err = r.syntax(c, "where an object should begin")
	}
	return err
}

// finish reads to the end of the input, where nothing but white space may follow.
func (r *reader) finish() error {
	switch c, err := r.peek(); err {
	case nil:
		return r.syntax(c, "behind the object")
	case io.EOF:
		return nil
	default:
		return fmt.Errorf("reading JSON after byte %d: %w", r.offset(), err)
	}
}

// checkType refuses what apimachinery refuses: an object without a kind, or with an apiVersion of three parts.
// Its error for a missing kind is not wrapped, because runtime.IsMissingKind does not unwrap.
func checkType(m map[string]any) error {
	apiVersion, _ := m["apiVersion"].(string)
	if _, err := schema.ParseGroupVersion(apiVersion); err != nil {
		return fmt.Errorf("invalid apiVersion: %s", printable(err.Error()))
	}
	if kind, _ := m["kind"].(string); kind == "" {
		return runtime.NewMissingKindErr(describe(m))
	}
	return nil
}

// describe tells which object lacks a kind, without its contents.
func describe(m map[string]any) string {
	apiVersion, _ := m["apiVersion"].(string)
	metadata, _ := m["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return fmt.Sprintf("{apiVersion: %q, metadata.name: %q, fields: %d}", printable(apiVersion), printable(name), len(m))
}

// maxText is how much of an object's text an error shows, in bytes.
const maxText = 1 << 10

// printable returns text of an object as it may be shown in an error: one short line.
func printable(text string) string { return sanitize.Text(text, maxText) }
