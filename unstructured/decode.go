// Package unstructured reads and writes Kubernetes objects of any kind without generated Go types.
//
//	obj, err := unstructured.Decode(data)
//	if err != nil {
//		return err
//	}
//	image, found, err := unstructured.Get[string](obj, "spec", "containers", "[name=app]", "image")
//	…
//	err = unstructured.Set(obj, 3, "spec", "replicas")
//	…
//	data, err = unstructured.Encode(obj)
//
// It accepts and decodes objects exactly like apimachinery's UnstructuredJSONScheme, but reads every byte once, straight off the
// wire: a list of a million pods or a watch running for days takes the memory of a single object.
//
//	Decode, Encode            a single object
//	ListDecoder               the items of a list, in sequence
//	WatchDecoder              the events of a watch, each returned with its last byte
//	Lazy                      an object in its JSON form, with fields decoded when they are read
//	Get, Set, Delete          a typed value at a path, such as "spec", "containers", "[name=app]", "image"
//	GetAll                    all values at a path with "[*]", such as "spec", "containers", "[*]", "image"
//	ParsePath                 a path from a text, such as .spec.containers[name=app].image
//	As, Into, From            conversion of an object to a struct, and back
//	YAMLDecoder, EncodeYAML   objects in a stream of YAML or JSON documents
//
// Package jsonpath evaluates kubectl's templates over objects.
package unstructured

import (
	"fmt"

	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/sanitize"
)

// Object is an object of any kind. It is apimachinery's own type, for use with existing code. It is not safe for concurrent use
// while it is changed.
type Object = unstructuredv1.Unstructured

// Decode reads a single object from all of data. A list is read like any object, with its items under "items". [ListDecoder]
// reads a list item by item.
//
// Objects become map[string]any, lists []any, integers in range int64, and further numbers float64. null stays. Field names keep
// their case. If a name occurs twice, the last field wins. Invalid UTF-8 becomes U+FFFD. Nesting is limited to 10000 levels. The
// object shares no memory with data.
//
// Data is rejected unless it is an object with a kind and a well-formed apiVersion. runtime.IsMissingKind reports whether only
// the kind is missing, and errors.Is(err, io.ErrUnexpectedEOF) whether data ends early. An object beyond the default of
// [Limits].Object is a *[LimitError]. Decode is safe for concurrent use.
//
// Only errors differ from apimachinery's. For a malformed apiVersion apimachinery reports a missing kind, and its errors quote
// the whole object, secrets included.
func Decode(data []byte) (*Object, error) { return Limits{}.Decode(data) }

// Decode is [Decode] with the limit l.Object.
func (l Limits) Decode(data []byte) (*Object, error) {
	r, err := l.borrow(data)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	m, err := r.Object()
	if err == nil {
		err = r.End()
	}
	if err == nil {
		err = checkType(m)
	}
	if err != nil {
		return nil, err
	}
	return &Object{Object: m}, nil
}

// checkType returns an error for an object without a kind, or with an apiVersion of three parts, like apimachinery. The error for
// a missing kind is not wrapped, because runtime.IsMissingKind does not unwrap.
func checkType(m map[string]any) error {
	apiVersion, _ := m["apiVersion"].(string)
	if _, err := schema.ParseGroupVersion(apiVersion); err != nil {
		return fmt.Errorf("invalid apiVersion: %s", printable(err.Error()))
	}
	if kind, _ := m["kind"].(string); kind == "" {
		name := (&Object{Object: m}).GetName()
		return runtime.NewMissingKindErr(fmt.Sprintf("{apiVersion: %q, metadata.name: %q, fields: %d}", printable(apiVersion), printable(name), len(m)))
	}
	return nil
}

// maxText limits an object's text in an error, in bytes.
const maxText = 1 << 10

// printable returns an object's text for an error, as one short line.
func printable(text string) string { return sanitize.Text(text, maxText) }
