package clustercopy

import (
	"encoding/json"
	"fmt"

	"github.com/anykind/anykind/unstructured"
)

// lastApplied is the annotation in which kubectl apply keeps a whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// withoutSecretData empties the values of secrets.
func (c *copier) withoutSecretData(r *result) error {
	for i, lazy := range r.objects {
		obj, err := lazy.Object()
		if err != nil {
			return fmt.Errorf("read %s: %w", lazy, err)
		}
		emptyValues(obj.Object)
		emptyAnnotation(obj)
		if r.objects[i], err = lazyOf(obj); err != nil {
			return fmt.Errorf("encode %s: %w", lazy, err)
		}
	}
	r.omitted = append(r.omitted, Omission{Version: "v1", Resource: "secrets", Reason: "the values of data are empty (Options.SecretData keeps them)", ByDefault: true})
	return nil
}

// emptyValues sets the values of data and stringData to "".
func emptyValues(secret map[string]any) {
	for _, field := range []string{"data", "stringData"} {
		values, _ := secret[field].(map[string]any)
		for key := range values {
			values[key] = ""
		}
	}
}

// emptyAnnotation empties the values in the annotation of kubectl apply. An annotation that is not an object is removed.
func emptyAnnotation(obj *unstructured.Object) {
	annotations := obj.GetAnnotations()
	text, found := annotations[lastApplied]
	if !found {
		return
	}
	var applied map[string]any
	if json.Unmarshal([]byte(text), &applied) == nil && applied != nil {
		emptyValues(applied)
		if empty, err := json.Marshal(applied); err == nil {
			annotations[lastApplied] = string(empty) + "\n"
			obj.SetAnnotations(annotations)
			return
		}
	}
	delete(annotations, lastApplied)
	obj.SetAnnotations(annotations)
}
