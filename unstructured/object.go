// Package unstructured reads and writes Kubernetes objects of any kind without generated Go types.
//
// It is the one JSON codec of this module. What it accepts and what it makes of it is what apimachinery's
// UnstructuredJSONScheme does (objects are map[string]any, lists []any, numbers int64 where they fit and float64
// where they do not, field names keep their case), but it reads every byte once, straight off the wire: a list of a
// million pods or a watch that runs for days costs the memory of one object at a time.
//
//	Decode, Encode            one object
//	ListDecoder               the items of a list, one by one
//	WatchDecoder              the events of a watch, each as soon as its last byte is there
//	Lazy                      an object that keeps its JSON and decodes what it is asked for
//	Get, Set, Delete          a typed value at a path, such as "spec", "containers", "[name=app]", "image"
//	ParsePath                 a path from a text, such as .spec.containers[name=app].image
//	As, From                  a struct of the caller's from an object, and back
//	YAMLDecoder, EncodeYAML   objects in a stream of YAML or JSON documents
package unstructured

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Object is an object of any kind: apimachinery's own type, so that it works with everything written for it.
// It is not safe for concurrent use while somebody changes it.
type Object = unstructured.Unstructured
