package clientgo

import (
	"errors"
	"fmt"
	"io"

	anykind "github.com/anykind/anykind/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxObject bounds an object's JSON. A server accepts a few MiB of one.
const maxObject = 64 << 20

// decodeObject reads the object of a response.
func decodeObject(body io.Reader) (*unstructured.Unstructured, error) {
	data, err := io.ReadAll(io.LimitReader(body, maxObject+1))
	if err != nil {
		return nil, fmt.Errorf("read the response: %w", err)
	}
	if len(data) > maxObject {
		return nil, fmt.Errorf("read the response: larger than %d MiB", maxObject>>20)
	}
	obj, err := anykind.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("decode the response: %w", err)
	}
	return obj, nil
}

// decodeList reads a list while it arrives.
func decodeList(body io.Reader) (*unstructured.UnstructuredList, error) {
	decoder := anykind.NewListDecoder(body)
	list := &unstructured.UnstructuredList{Object: map[string]any{}, Items: []unstructured.Unstructured{}}
	for {
		item, err := decoder.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("decode the list: %w", err)
		}
		list.Items = append(list.Items, *item)
	}
	kind, meta := decoder.TypeMeta(), decoder.Meta()
	list.SetAPIVersion(kind.APIVersion)
	list.SetKind(kind.Kind)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&meta)
	if err != nil {
		return nil, fmt.Errorf("decode the list's metadata: %w", err)
	}
	if len(fields) > 0 {
		list.Object["metadata"] = fields
	}
	return list, nil
}
