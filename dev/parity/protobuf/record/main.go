// Command record writes the table of package internal/protobuf from the Go types of the module's Kubernetes version, and the
// objects of its tests.
//
//	make protobuf-record
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/anykind/anykind/dev/parity/protobuf/table"
)

const (
	dir     = "../../internal/protobuf"
	objects = "../../unstructured/testdata"
)

func main() {
	err := writeTable()
	for _, name := range []string{"configmap", "crd", "deployment", "event", "node", "pod", "secret"} {
		if err == nil {
			err = writeObject(name)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func writeTable() error {
	text, err := table.Text()
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	writer, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := writer.Write(text); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "messages.txt.gz"), buf.Bytes(), 0o644)
}

// writeObject writes an object of package unstructured's tests as Protobuf, with its envelope, and the decoded object as JSON.
func writeObject(name string) error {
	text, err := os.ReadFile(filepath.Join(objects, name+".json"))
	if err != nil {
		return err
	}
	scheme, err := table.Scheme()
	if err != nil {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return err
	}
	obj, gvk, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode(compact.Bytes(), nil, nil)
	if err != nil {
		return fmt.Errorf("decode %s: %w", name, err)
	}
	obj.GetObjectKind().SetGroupVersionKind(*gvk)
	encoder := protobuf.NewSerializer(scheme, scheme)
	encoded, err := runtime.Encode(encoder, obj)
	if err != nil {
		return err
	}
	if obj, err = runtime.Decode(encoder, encoded); err != nil {
		return err
	}
	if text, err = json.Marshal(obj); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "testdata", name+".pb"), encoded, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "testdata", name+".json"), append(text, '\n'), 0o644)
}
