package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/apitest/internal/builtin"
	limitedpatch "github.com/anykind/anykind/apitest/internal/jsonpatch"
	"github.com/anykind/anykind/apitest/internal/limits"
)

const maxJSONPatchOperations = 10000

// Patch executes a PATCH of an object or of one of its subresources. The type of the patch is the body's media type.
func (w *Writer) Patch(ctx context.Context, req *Request, body Body) (result Result, err error) {
	op := w.begin(ctx, req)
	defer op.finish(&result, &err)
	mediaType, _, _ := strings.Cut(body.MediaType, ";")
	patchType := types.PatchType(mediaType)
	if !slices.Contains(op.patchTypes(), patchType) {
		return Result{}, op.unsupportedPatchType()
	}
	if op.options, err = patchOptions(req.Query, patchType); err != nil {
		return Result{}, err
	}
	op.manager = managerName(op.options.fieldManager, req.UserAgent)
	var patch change
	switch patchType {
	case types.JSONPatchType:
		patch = func(live *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
			return op.patchJSON(live, func(content []byte) ([]byte, []string, error) { return op.applyJSONPatch(content, body.Data) })
		}
	case types.MergePatchType:
		patch = func(live *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
			return op.patchJSON(live, func(content []byte) ([]byte, []string, error) { return op.applyMergePatch(content, body.Data) })
		}
	case types.StrategicMergePatchType:
		patch = func(live *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
			return op.patchStrategic(live, body.Data)
		}
	case types.ApplyYAMLPatchType:
		patch = func(live *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
			return op.patchApply(live, body)
		}
	default:
		return Result{}, op.unsupportedPatchType()
	}
	op.isApply = patchType == types.ApplyYAMLPatchType
	return op.update(op.checkedPatch(patch), "", op.isApply && req.Subresource == "")
}

// checkedPatch adds the checks of a patched object that do not depend on the type of the patch.
func (op *operation) checkedPatch(patch change) change {
	return func(live *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
		obj, err := patch(live)
		if err != nil {
			return nil, err
		}
		if live.GetUID() == "" && obj.GetUID() != "" {
			return nil, apierrors.NewConflict(op.groupResource(), op.req.Name,
				fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", obj.GetUID()))
		}
		if err := op.ensureNamespace(obj); err != nil {
			return nil, err
		}
		return obj, op.checkName(obj)
	}
}

func (op *operation) patchTypes() []types.PatchType {
	supported := []types.PatchType{types.JSONPatchType, types.MergePatchType}
	if op.resource.Definition == nil {
		supported = append(supported, types.StrategicMergePatchType)
	}
	return append(supported, types.ApplyYAMLPatchType)
}

func (op *operation) unsupportedPatchType() error {
	if op.resource.Definition != nil {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
		}}
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "415: Unsupported Media Type", Details: &metav1.StatusDetails{},
	}}
}

// patchJSON patches the JSON of the object and decodes the result.
func (op *operation) patchJSON(live *unstructuredv1.Unstructured, patch func([]byte) (patched []byte, strict []string, err error)) (*unstructuredv1.Unstructured, error) {
	if live.GetUID() == "" {
		return nil, apierrors.NewNotFound(op.groupResource(), op.req.Name)
	}
	content, err := live.MarshalJSON()
	if err != nil {
		return nil, err
	}
	patched, strict, err := patch(content)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(patched, &object); err != nil {
		var meta bodyKind
		if failed := json.Unmarshal(patched, &meta); failed != nil {
			return nil, invalidPatch(string(patched), "couldn't get version/kind; json parse error: "+failed.Error())
		}
		return nil, invalidPatch(string(patched), err.Error())
	}
	return op.patched(live, object, string(patched), strict)
}

// patched completes a patched object as a decoder would. shown is the patch or the patched object in error texts.
func (op *operation) patched(live *unstructuredv1.Unstructured, object map[string]any, shown string, strict []string) (*unstructuredv1.Unstructured, error) {
	if reason := op.otherKindPatched(object); reason != "" {
		return nil, invalidPatch(shown, reason)
	}
	object, unknown, err := op.coerce(object)
	if err != nil {
		return nil, invalidPatch(shown, err.Error())
	}
	strict = append(strict, unknown...)
	switch op.options.fieldValidation {
	case metav1.FieldValidationStrict:
		if len(strict) > 0 {
			return nil, invalidPatch(shown, strictError(strict))
		}
	case metav1.FieldValidationWarn:
		for _, text := range strict {
			op.warn(text)
		}
	}
	return op.manage(live, &unstructuredv1.Unstructured{Object: object})
}

// otherKindPatched returns the API server's error text for a patch that changes the kind of a built-in object, "" if the kind is
// unchanged.
func (op *operation) otherKindPatched(object map[string]any) string {
	kind := (&unstructuredv1.Unstructured{Object: object}).GroupVersionKind()
	want := op.kind()
	isCustom := op.resource.Definition != nil && op.subresource != "scale"
	if isCustom && kind.Kind == "" {
		content, _ := json.Marshal(object)
		return fmt.Sprintf("Object 'Kind' is missing in '%s'", content)
	}
	if kind == want || isCustom {
		return ""
	}
	if op.registry.OfKind(kind) != nil {
		if _, _, err := builtin.Decode(kind, object); err != nil {
			return err.Error()
		}
	}
	return op.otherKind(kind, want)
}

func invalidPatch(shown, reason string) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), shown, reason)})
}

func (op *operation) checksFields() bool {
	return op.options.fieldValidation != metav1.FieldValidationIgnore
}

// jsonPatchOp is an operation of a JSON patch. Error texts show its name.
type jsonPatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

func (op *operation) applyJSONPatch(content, patch []byte) (patched []byte, strict []string, err error) {
	if op.checksFields() {
		var operations []jsonPatchOp
		errs, err := kjson.UnmarshalStrict(patch, &operations)
		if err != nil {
			text := strings.ReplaceAll(err.Error(), "write.jsonPatchOp", "handlers.jsonPatchOp") // the server's package
			return nil, nil, apierrors.NewBadRequest("error decoding patch: " + text)
		}
		for _, err := range errs {
			strict = append(strict, "json patch "+err.Error())
		}
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	if len(operations) > maxJSONPatchOperations {
		return nil, nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", maxJSONPatchOperations, len(operations)))
	}
	patched, err = limitedpatch.Apply(content, operations)
	if err != nil {
		return nil, nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return patched, strict, nil
}

func (op *operation) applyMergePatch(content, patch []byte) (patched []byte, strict []string, err error) {
	if op.checksFields() {
		errs, err := kjson.UnmarshalStrict(patch, &map[string]any{})
		if err != nil {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		for _, err := range errs {
			strict = append(strict, err.Error())
		}
	}
	patched, err = jsonpatch.MergePatch(content, patch)
	if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	return patched, strict, err
}

// patchApply is server-side apply: it merges the applied configuration into live by field ownership.
func (op *operation) patchApply(live *unstructuredv1.Unstructured, body Body) (*unstructuredv1.Unstructured, error) {
	patch := &unstructuredv1.Unstructured{Object: map[string]any{}}
	if body.Object != nil {
		patch.Object = runtime.DeepCopyJSON(body.Object)
	} else if err := limits.CheckAliases(body.Data); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: error converting YAML to JSON: %v", err))
	} else if err := yaml.Unmarshal(body.Data, &patch.Object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	patch.Object, _ = withIntegers(patch.Object).(map[string]any)
	obj, err := op.apply(live, patch)
	if err != nil {
		return nil, err
	}
	if !op.checksFields() || body.Object != nil {
		return obj, nil
	}
	if err := yaml.UnmarshalStrict(body.Data, &map[string]any{}); err != nil {
		if op.options.fieldValidation == metav1.FieldValidationStrict {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding YAML: %v", err))
		}
		for _, text := range yamlTexts(err.Error()) {
			op.warn(text)
		}
	}
	return obj, nil
}

// withIntegers returns a decoded value with whole numbers as int64.
func withIntegers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			value[name] = withIntegers(field)
		}
	case []any:
		for i, item := range value {
			value[i] = withIntegers(item)
		}
	case float64:
		if whole := int64(value); float64(whole) == value {
			return whole
		}
	}
	return value
}
