package write

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/limits"
)

// bodyKind has the fields that the API server decodes first. Its type is visible in error texts of encoding/json.
type bodyKind = struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
}

// decode returns the object of a request body with defaults and without unknown fields. Depending on the request's
// fieldValidation, unknown fields are ignored, warnings or errors.
func (op *operation) decode(body Body) (*unstructuredv1.Unstructured, error) {
	want := op.kind()
	content, kind, strict, err := op.parse(body)
	isCustomScale := op.resource.Definition != nil && op.subresource == "scale"
	if err != nil && isCustomScale && body.Err == nil {
		return nil, errScaleUnregistered()
	}
	if err != nil {
		return nil, err
	}
	content, unknown, err := op.coerce(content)
	if err != nil && isCustomScale {
		return nil, errScaleUnregistered()
	}
	if err != nil {
		return nil, cannotBeHandled(kind, want, err.Error())
	}
	obj := &unstructuredv1.Unstructured{Object: content}
	strict = append(strict, unknown...)
	switch op.options.fieldValidation {
	case metav1.FieldValidationStrict:
		if len(strict) > 0 && isCustomScale {
			return nil, errScaleUnregistered()
		}
		if len(strict) > 0 {
			return nil, cannotBeHandled(kind, want, strictError(strict))
		}
	case metav1.FieldValidationWarn:
		for _, text := range strict {
			op.warn(text)
		}
	}
	if got := kind.GroupVersion(); got != want.GroupVersion() {
		return nil, otherVersion(kind, want)
	}
	return obj, nil
}

// errScaleUnregistered is the API server's error for an undecodable Scale of a custom resource.
func errScaleUnregistered() error {
	return apierrors.NewBadRequest(`no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"`)
}

func strictError(texts []string) string {
	return "strict decoding error: " + strings.Join(texts, ", ")
}

func cannotBeHandled(kind, want schema.GroupVersionKind, reason string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %s", kind.Kind, kind.Version, want.Kind, reason))
}

// parse decodes a JSON or YAML body. strict has the texts of duplicate fields.
func (op *operation) parse(body Body) (content map[string]any, kind schema.GroupVersionKind, strict []string, err error) {
	if body.Err != nil {
		return nil, kind, nil, body.Err
	}
	want := op.kind()
	if body.Object != nil {
		content = runtime.DeepCopyJSON(body.Object)
	} else if content, strict, err = parseObject(body, want.Kind); err != nil {
		return nil, kind, nil, err
	}
	u := unstructuredv1.Unstructured{Object: content}
	kind = u.GroupVersionKind()
	if _, err := schema.ParseGroupVersion(u.GetAPIVersion()); err != nil {
		return nil, kind, nil, unrecognized(want.Kind, err.Error(), body.Data)
	}
	if op.resource.Definition != nil && op.subresource != "scale" {
		if kind.Kind == "" {
			reason := fmt.Sprintf("Object 'Kind' is missing in '%s'", body.Data)
			if op.options.fieldValidation == metav1.FieldValidationIgnore {
				shown := want
				if kind.Version != "" {
					shown.Version = kind.Version
				}
				return nil, kind, nil, cannotBeHandled(shown, want, reason)
			}
			return nil, kind, nil, unrecognized(want.Kind, reason, body.Data)
		}
		return content, kind, strict, nil
	}
	if kind.Kind == "" {
		kind.Kind = want.Kind
	}
	if u.GetAPIVersion() == "" {
		op.isUntyped = op.resource.Definition != nil
		kind.Group = want.Group
		kind.Version = want.Version
	}
	u.SetGroupVersionKind(kind)
	if kind != want {
		if other := op.registry.OfKind(kind); other != nil && other.Definition == nil && kind.GroupKind() == want.GroupKind() {
			return nil, kind, nil, otherVersion(kind, want)
		}
		return nil, kind, nil, cannotBeHandled(kind, want, op.otherKind(kind, want))
	}
	return content, kind, strict, nil
}

func otherVersion(kind, want schema.GroupVersionKind) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)",
		kind.GroupVersion(), want.GroupVersion()))
}

// otherKind returns the API server's error text for a body of a kind other than want.
func (op *operation) otherKind(kind, want schema.GroupVersionKind) string {
	if !op.isRegistered(kind) {
		return fmt.Sprintf("no kind %q is registered for version %q in scheme \"pkg/runtime/scheme.go:111\"", kind.Kind, kind.GroupVersion())
	}
	return fmt.Sprintf("converting (%s.%s) to (%s.%s): unknown conversion", kind.Version, kind.Kind, internalPackage(want.Group), want.Kind)
}

// isRegistered reports whether kind is registered in a built-in group version: as the kind of a resource, a list or a request.
func (op *operation) isRegistered(kind schema.GroupVersionKind) bool {
	if kind == (schema.GroupVersionKind{Version: "v1", Kind: "List"}) || builtin.Known(kind) {
		return true
	}
	for _, name := range []string{kind.Kind, strings.TrimSuffix(kind.Kind, "List")} {
		if resource := op.registry.OfKind(kind.GroupVersion().WithKind(name)); resource != nil && resource.Definition == nil {
			return true
		}
	}
	return false
}

// internalPackage returns the Go package of a group's internal types, as shown in error texts.
func internalPackage(group string) string {
	if group == "" {
		return "core"
	}
	name, _, _ := strings.Cut(group, ".")
	return name
}

func parseObject(body Body, kind string) (content map[string]any, strict []string, err error) {
	data := body.Data
	if body.MediaType == "application/yaml" {
		if err := limits.CheckAliases(body.Data); err != nil {
			return nil, nil, unrecognized(kind, err.Error(), body.Data)
		}
		if data, err = yaml.YAMLToJSON(body.Data); err != nil {
			return nil, nil, unrecognized(kind, err.Error(), body.Data)
		}
		if _, err := yaml.YAMLToJSONStrict(body.Data); err != nil {
			strict = append(strict, yamlTexts(err.Error())...)
		}
	}
	var meta bodyKind
	if err := json.Unmarshal(data, &meta); err != nil {
		return nil, nil, unrecognized(kind, "couldn't get version/kind; json parse error: "+err.Error(), body.Data)
	}
	duplicates, err := kjson.UnmarshalStrict(data, &content)
	if err != nil {
		return nil, nil, unrecognized(kind, err.Error(), body.Data)
	}
	if content == nil {
		content = map[string]any{}
	}
	for _, duplicate := range duplicates {
		strict = append(strict, duplicate.Error())
	}
	return content, strict, nil
}

// yamlTexts splits the error of a strict YAML decoder into its lines.
func yamlTexts(text string) []string {
	for _, prefix := range []string{"error converting YAML to JSON: yaml: unmarshal errors:\n", "yaml: unmarshal errors:\n"} {
		if rest, found := strings.CutPrefix(text, prefix); found {
			lines := strings.Split(rest, "\n")
			for i := range lines {
				lines[i] = strings.TrimSpace(lines[i])
			}
			return lines
		}
	}
	return []string{text}
}

func unrecognized(kind, reason string, data []byte) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %s (%s)", kind, reason, summary(data)))
}

// summary returns the start of a body, as shown in error texts.
func summary(data []byte) string {
	const maxLength = 30
	if len(data) == 0 {
		return "<empty>"
	}
	text := data
	ending := ""
	if len(data) > maxLength {
		text = data[:maxLength]
		ending = " ..."
	}
	if data[0] == '{' {
		return string(text) + ending
	}
	return hex.EncodeToString(text) + ending
}
