package write

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
)

// patchStrategic applies a strategic merge patch with the merge keys of the recorded OpenAPI document.
func (op *operation) patchStrategic(live *unstructuredv1.Unstructured, data []byte) (*unstructuredv1.Unstructured, error) {
	if live.GetUID() == "" {
		return nil, apierrors.NewNotFound(op.groupResource(), op.req.Name)
	}
	patch := map[string]any{}
	strictErrs, err := kjson.UnmarshalStrict(data, &patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	var strict []string
	for _, err := range strictErrs {
		strict = append(strict, err.Error())
	}
	definitions, object, err := op.resource.Definitions()
	if err != nil {
		return nil, err
	}
	lookup := strategicpatch.PatchMetaFromOpenAPIV3{Schema: object, SchemaList: definitions}
	object2 := runtime.DeepCopyJSON(live.Object)
	patched, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(object2, patch, lookup)
	if err != nil {
		return nil, strategicError(err)
	}
	shown := fmt.Sprintf("%+v", patch)                                             // without directives: merging removes them
	(&unstructuredv1.Unstructured{Object: patched}).SetGroupVersionKind(op.kind()) // the server converts to this type
	obj, err := op.patched(live, patched, shown, strict)
	return obj, conversionText(err)
}

func strategicError(err error) error {
	for _, bad := range []error{mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList,
		mergepatch.ErrBadPatchFormatForRetainKeys, mergepatch.ErrBadPatchFormatForSetElementOrderList,
		mergepatch.ErrUnsupportedStrategicMergePatchFormat} {
		if errors.Is(err, bad) {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	if errors.Is(err, mergepatch.ErrNoListOfLists) || errors.Is(err, mergepatch.ErrPatchContentNotMatchRetainKeys) {
		return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return err
}

var mismatch = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`json: cannot unmarshal (\w+) into Go (?:struct field \S+|value) of type (\S+?)(["\s]|$)`)
})

// conversionText rewrites the text of a decoding error. The server converts a patched map with apimachinery's converter, which
// has different texts than its JSON decoder.
func conversionText(err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return err
	}
	status.ErrStatus.Message = unstructuredText(status.ErrStatus.Message)
	if details := status.ErrStatus.Details; details != nil {
		for i := range details.Causes {
			details.Causes[i].Message = unstructuredText(details.Causes[i].Message)
		}
	}
	return err
}

// unstructuredText rewrites an error text of the JSON decoder as the text of apimachinery's converter for the same value.
func unstructuredText(text string) string {
	text = strings.ReplaceAll(text, "illegal base64", "error decoding from json: illegal base64")
	return mismatch().ReplaceAllStringFunc(text, func(match string) string {
		parts := mismatch().FindStringSubmatch(match)
		from := map[string]string{"object": "map", "array": "slice", "number": "int64"}[parts[1]]
		if from == "" {
			from = parts[1]
		}
		switch into := parts[2]; {
		case strings.HasPrefix(into, "map["):
			return "cannot restore map from " + from + parts[3]
		case strings.HasPrefix(into, "[]"):
			return "cannot restore slice from " + from + parts[3]
		case strings.Contains(into, "."):
			return "cannot restore struct from: " + from + parts[3]
		case from == "int64" && into == "string": // convertible in Go
			return "cannot convert int64 to string" + parts[3]
		default:
			return "unrecognized type: " + into + parts[3]
		}
	})
}
