package clientgo

import (
	"bytes"
	"fmt"
	"io"

	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	anykind "github.com/anykind/anykind/unstructured"
)

// decodeObject decodes the object in a response.
func decodeObject(body io.Reader, limits anykind.Limits) (*unstructuredv1.Unstructured, error) {
	var data bytes.Buffer
	if err := limits.ReadInto(&data, body); err != nil {
		return nil, fmt.Errorf("read the response: %w", err)
	}
	obj, err := limits.Decode(data.Bytes())
	if err != nil {
		return nil, fmt.Errorf("decode the response: %w", err)
	}
	return obj, nil
}

// decodeList decodes a list while it arrives.
func decodeList(body io.Reader, limits anykind.Limits) (*unstructuredv1.UnstructuredList, error) {
	decoder := limits.NewPageDecoder(body)
	list := &unstructuredv1.UnstructuredList{Object: map[string]any{}, Items: []unstructuredv1.Unstructured{}}
	for {
		item, err := decoder.Next()
		if err == io.EOF { // a wrapped EOF is a broken connection, not the end
			break
		}
		if err != nil {
			return nil, fmt.Errorf("decode the list: %w", err)
		}
		list.Items = append(list.Items, *item)
	}
	kind := decoder.TypeMeta()
	meta := decoder.Meta()
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
