package command

import (
	"encoding/json"

	"github.com/anykind/anykind/unstructured"
)

// LastApplied is the annotation with the applied manifest. kubectl apply computes its changes from it.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// SaveConfig sets the annotation LastApplied to the object.
func SaveConfig(obj *unstructured.Object) error {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	obj.SetAnnotations(annotations) // the configuration has the empty field, too, as in kubectl
	text, err := Configuration(obj)
	if err != nil {
		return err
	}
	annotations[LastApplied] = text
	obj.SetAnnotations(annotations)
	return nil
}

// Configuration returns the object without the annotation as JSON.
func Configuration(obj *unstructured.Object) (string, error) {
	plain := obj.DeepCopy()
	if _, err := unstructured.Delete(plain, "metadata", "annotations", LastApplied); err != nil {
		return "", err
	}
	data, err := json.Marshal(plain.Object)
	return string(data) + "\n", err
}
