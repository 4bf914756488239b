package controllerruntime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/anykind/anykind/unstructured"
)

// encode returns the JSON of an object with its kind. The kind of a typed object comes from the scheme.
func (a *apiClient) encode(obj runtime.Object) ([]byte, error) {
	switch obj := obj.(type) {
	case *unstructured.Object:
		return unstructured.Encode(obj)
	case runtime.Unstructured:
		return runtime.Encode(unstructuredv1.UnstructuredJSONScheme, obj)
	}
	gvk, err := apiutil.GVKForObject(obj, a.scheme)
	if err != nil {
		return nil, err
	}
	serializer := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, a.scheme, a.scheme, jsonserializer.SerializerOptions{})
	return runtime.Encode(a.codecs.WithoutConversion().EncoderForVersion(serializer, gvk.GroupVersion()), obj)
}

// decode decodes a response into an object like controller-runtime: a typed object loses its kind, unstructured objects and
// metadata keep their kind. A Status in the response leaves the object unchanged, and is an error if it reports a failure.
func (a *apiClient) decode(body []byte, into runtime.Object, limits unstructured.Limits) error {
	switch obj := into.(type) {
	case runtime.Unstructured:
		return decodeUnstructured(body, obj, limits)
	case *metav1.PartialObjectMetadata:
		gvk := obj.GroupVersionKind()
		metadata := metav1.PartialObjectMetadata{}
		if err := unmarshal(body, &metadata, limits); err != nil {
			return fmt.Errorf("decode metadata: %w", err)
		}
		*obj = metadata
		obj.SetGroupVersionKind(gvk)
		return nil
	default:
		return a.decodeTyped(body, into, limits)
	}
}

// unmarshal decodes JSON or, into a generated type, protobuf, with a memory limit.
func unmarshal(body []byte, into any, limits unstructured.Limits) error {
	if m, ok := into.(message); ok && isProtobuf(body) {
		_, err := decodeMessage(body, m, limits)
		return err
	}
	if err := limits.CheckTyped(body, into); err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

func decodeUnstructured(body []byte, into runtime.Unstructured, limits unstructured.Limits) error {
	obj, err := limits.Decode(body)
	if err != nil {
		return err
	}
	gvk := into.GetObjectKind().GroupVersionKind()
	if obj.GroupVersionKind() == statusKind && gvk != statusKind {
		var status metav1.Status
		if err := unstructured.Into(obj, &status); err != nil {
			return err
		}
		return statusError(&status)
	}
	into.SetUnstructuredContent(obj.Object)
	if !gvk.Empty() {
		into.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return nil
}

var statusKind = schema.GroupVersionKind{Version: "v1", Kind: "Status"}

func statusError(status *metav1.Status) error {
	if status.Status == metav1.StatusSuccess {
		return nil
	}
	return apierrors.FromObject(status)
}

// decodeTyped decodes into a new object and then replaces into. Fields that the response lacks are cleared.
func (a *apiClient) decodeTyped(body []byte, into runtime.Object, limits unstructured.Limits) error {
	target := reflect.New(reflect.TypeOf(into).Elem()).Interface().(runtime.Object)
	if m := generatedMessage(target); m != nil && isProtobuf(body) {
		isStatus, err := decodeMessage(body, m, limits)
		if err == nil && !isStatus {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(target).Elem())
		}
		return err
	}
	for _, t := range []runtime.Object{into, &metav1.Status{}} {
		if err := limits.CheckTyped(body, t); err != nil {
			return err
		}
	}
	// The codecs' own deserializer accepts YAML, too. Its memory use is not bounded.
	serializer := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, a.scheme, a.scheme, jsonserializer.SerializerOptions{})
	decoder := a.codecs.WithoutConversion().DecoderToVersion(serializer, nil)
	out, _, err := decoder.Decode(body, nil, target)
	switch status, isStatus := out.(*metav1.Status); {
	case err != nil:
		return err
	case out != target && isStatus:
		return statusError(status)
	case out == target:
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(target).Elem())
	}
	return nil
}

// decodeUnstructuredList decodes a list item by item.
func decodeUnstructuredList(body io.Reader, into *unstructuredv1.UnstructuredList, limits unstructured.Limits) error {
	decoder := limits.NewPageDecoder(body)
	items := []unstructured.Object{}
	for {
		item, err := decoder.Next()
		if err == io.EOF { // a wrapped EOF is a broken connection, not the end
			break
		}
		if err != nil {
			return err
		}
		items = append(items, *item)
	}
	metadata, err := unstructured.From(&struct {
		Metadata metav1.ListMeta `json:"metadata"`
	}{decoder.Meta()})
	if err != nil {
		return err
	}
	kind := decoder.TypeMeta()
	metadata.Object["apiVersion"] = kind.APIVersion
	metadata.Object["kind"] = kind.Kind
	into.Object = metadata.Object
	into.Items = items
	return nil
}

// decodeListObject decodes a list into a single object with an items field, such as an *unstructured.Unstructured.
func decodeListObject(body io.Reader, into runtime.Unstructured, limits unstructured.Limits) error {
	var data bytes.Buffer
	if err := limits.ReadInto(&data, body); err != nil {
		return err
	}
	list, err := limits.Decode(data.Bytes())
	if err != nil {
		return err
	}
	into.SetUnstructuredContent(list.Object)
	return nil
}

// decodeMetadataList decodes a list of metadata. Its items get the kind item.
func decodeMetadataList(body io.Reader, into *metav1.PartialObjectMetadataList, item schema.GroupVersionKind, limits unstructured.Limits) error {
	gvk := into.GroupVersionKind()
	list := metav1.PartialObjectMetadataList{}
	var data bytes.Buffer
	if err := limits.ReadInto(&data, body); err != nil {
		return err
	}
	if err := unmarshal(data.Bytes(), &list, limits); err != nil {
		return fmt.Errorf("decode a list of metadata: %w", err)
	}
	*into = list
	into.SetGroupVersionKind(gvk)
	for i := range into.Items {
		into.Items[i].SetGroupVersionKind(item)
	}
	return nil
}

// decodeTypedList decodes into a new list and then replaces into.
func (a *apiClient) decodeTypedList(body io.Reader, into runtime.Object, limits unstructured.Limits) error {
	var data bytes.Buffer
	if err := limits.ReadInto(&data, body); err != nil {
		return err
	}
	fresh := reflect.New(reflect.TypeOf(into).Elem()).Interface().(runtime.Object)
	if err := a.decodeTyped(data.Bytes(), fresh, limits); err != nil {
		return err
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(fresh).Elem())
	return nil
}
