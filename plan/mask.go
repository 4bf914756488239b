package plan

import (
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"strings"

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
