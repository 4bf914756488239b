package protobuf

import (
	"bytes"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/limits"
)

// FuzzDecoder decodes any bytes as a kind. Check, Object and AppendJSON must agree.
func FuzzDecoder(f *testing.F) {
	for _, sample := range samples(f) {
		f.Add(sample.typeMeta.APIVersion, sample.typeMeta.Kind, sample.raw)
	}
	f.Fuzz(func(t *testing.T, apiVersion, kind string, raw []byte) {
		message, found := Lookup(schema.FromAPIVersionAndKind(apiVersion, kind))
		if !found {
			return
		}
		typeMeta := metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
		d := Borrow(limits.DefaultObject, errExceeded)
		defer d.Release()
		checkErr := d.Check(message, raw, typeMeta)
		checked := d.Memory()
		obj, err := d.Object(message, raw, typeMeta)
		if (err == nil) != (checkErr == nil) {
			t.Fatalf("Object returned %v, Check %v", err, checkErr)
		}
		if err != nil {
			return
		}
		if checked != d.Memory() {
			t.Errorf("Check counted %d bytes, Object %d", checked, d.Memory())
		}
		text, err := message.AppendJSON(nil, raw, typeMeta)
		if err != nil {
			t.Fatal(err)
		}
		if fromJSON := decodeJSON(t, text); !reflect.DeepEqual(obj, fromJSON) {
			t.Errorf("Object: %v\nJSON: %v", obj, fromJSON)
		}
	})
}

// FuzzListReader reads any bytes as a body, and as frames of a watch.
func FuzzListReader(f *testing.F) {
	for _, sample := range samples(f) {
		f.Add(envelope(sample.typeMeta.APIVersion, sample.typeMeta.Kind+"List", delimitedField(2, sample.raw)))
		f.Add(frame(append(textField(1, "ADDED"), delimitedField(2, delimitedField(1, sample.body))...)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = readList(NewListReader(bytes.NewReader(body), 1<<20, errExceeded))
		_, _, _ = Envelope(body)
		src := bytes.NewReader(body)
		for {
			var buf bytes.Buffer
			event, err := ReadFrame(src, &buf, 1<<20, errExceeded)
			if err != nil {
				return
			}
			_, _, _ = Event(event)
		}
	})
}
