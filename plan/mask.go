package plan

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// Masked returns a copy in which the values of a Secret are replaced by their lengths, without Want.
func (c *Change) Masked() *Change {
	one := *c
	one.Live, one.Planned = masked(c.Live, c.Planned)
	one.Fields = maskedFields(c)
	one.Want = nil
	return &one
}

// masked returns two states of an object for output. The values of a Secret are replaced by their lengths, and by "before" and
// "after" if they differ. Other objects are returned unchanged.
func masked(live, planned *unstructured.Object) (_, _ *unstructured.Object) {
	if !isSecret(live) && !isSecret(planned) {
		return live, planned
	}
	return maskedState(live, planned, "before"), maskedState(planned, live, "after")
}

func isSecret(obj *unstructured.Object) bool {
	return obj != nil && obj.GetAPIVersion() == "v1" && obj.GetKind() == "Secret"
}

func maskedState(obj, opposite *unstructured.Object, when string) *unstructured.Object {
	if obj == nil {
		return nil
	}
	fields := maps.Clone(obj.Object)
	for _, name := range []string{"data", "stringData"} {
		if data, isMap := fields[name].(map[string]any); isMap {
			fields[name] = maskedValues(data, mapOf(opposite, name), when)
		}
	}
	if metadata, isMap := fields["metadata"].(map[string]any); isMap {
		if annotations, isMap := metadata["annotations"].(map[string]any); isMap && annotations[lastApplied] != nil {
			metadata = maps.Clone(metadata)
			annotations = maps.Clone(annotations)
			opposed := mapOf(opposite, "metadata", "annotations")
			maps.Copy(annotations, maskedValues(map[string]any{lastApplied: annotations[lastApplied]}, opposed, when))
			metadata["annotations"] = annotations
			fields["metadata"] = metadata
		}
	}
	return &unstructured.Object{Object: fields}
}

// withoutValues returns a server's error without the values of a Secret in its text. Errors about other objects are returned unchanged, and
// errors about fields: their text has paths only.
func (c *Change) withoutValues(err error) error {
	var status *apierrors.StatusError
	var fields *dynamic.FieldValidationError
	var conflict *dynamic.ApplyConflictError
	if !errors.As(err, &status) || errors.As(err, &fields) || errors.As(err, &conflict) {
		return err
	}
	text := c.withoutValuesIn(status.ErrStatus.Message)
	if text == status.ErrStatus.Message {
		return err
	}
	masked := *status.ErrStatus.DeepCopy()
	masked.Message = text
	if masked.Details != nil {
		masked.Details.Causes = nil
	}
	return &apierrors.StatusError{ErrStatus: masked}
}

// hiddenText replaces a text with a value of a Secret.
const hiddenText = "the text of the server contains a value of the Secret and is not shown"

// withoutValuesIn returns a server's text about the object without the values of a Secret.
func (c *Change) withoutValuesIn(text string) string {
	if !isSecret(c.Want) && !isSecret(c.Live) {
		return text
	}
	text, _, _ = strings.Cut(text, ", got ") // of a wrong type: .data.password: expected string, got 123456
	for _, obj := range []*unstructured.Object{c.Want, c.Live} {
		for _, values := range []any{mapOf(obj)["data"], mapOf(obj)["stringData"], mapOf(obj, "metadata", "annotations")[lastApplied]} {
			if hasValue(text, values) {
				return hiddenText
			}
		}
	}
	return text
}

// hasValue reports whether a text contains a value, as it is, quoted, as base64, or decoded.
func hasValue(text string, value any) bool {
	var forms []string
	switch value := value.(type) {
	case nil:
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(value)), func(v any) bool { return hasValue(text, v) })
	case []any:
		return slices.ContainsFunc(value, func(v any) bool { return hasValue(text, v) })
	case string:
		decoded, _ := base64.StdEncoding.DecodeString(value) // empty for a plain text
		forms = []string{value, string(decoded), base64.StdEncoding.EncodeToString([]byte(value))}
	default:
		forms = []string{fmt.Sprint(value)}
	}
	return slices.ContainsFunc(forms, func(form string) bool {
		quoted := strconv.Quote(form)
		return form != "" && (strings.Contains(text, form) || strings.Contains(text, quoted[1:len(quoted)-1]))
	})
}

// lastApplied is the annotation of kubectl apply with the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func mapOf(obj *unstructured.Object, path ...string) map[string]any {
	if obj == nil {
		return nil
	}
	fields := obj.Object
	for _, name := range path {
		fields, _ = fields[name].(map[string]any)
	}
	return fields
}

func maskedValues(data, opposite map[string]any, when string) map[string]any {
	result := map[string]any{}
	for name, value := range data {
		text := fmt.Sprintf("*** (%d bytes)", size(value))
		if opposed, exists := opposite[name]; exists && !reflect.DeepEqual(value, opposed) {
			text = fmt.Sprintf("*** (%d bytes, %s)", size(value), when)
		}
		if already, isText := value.(string); isText && strings.HasPrefix(already, "*** (") {
			text = already // of a saved plan
		}
		result[name] = text
	}
	return result
}

// size returns the length of a value of a Secret, decoded if it is base64.
func size(value any) int {
	text, isText := value.(string)
	if !isText {
		text = encode(value)
	}
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
		return len(decoded)
	}
	return len(text)
}

// maskedFields returns the changed fields, without the values of a Secret.
func maskedFields(c *Change) []Field {
	if len(c.Fields) == 0 || !isSecret(c.Live) {
		return c.Fields
	}
	live, planned := masked(c.Live, c.Planned)
	return changedFields(live, planned)
}
