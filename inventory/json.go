package inventory

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/readiness"
)

// entryJSON is the JSON form of an entry.
type entryJSON struct {
	APIVersion string           `json:"apiVersion"`
	Resource   string           `json:"resource"`
	Kind       string           `json:"kind"`
	Namespace  string           `json:"namespace,omitempty"`
	Name       string           `json:"name"`
	UID        types.UID        `json:"uid"`
	Readiness  readiness.Status `json:"readiness,omitempty"`
}

// edgeJSON is the JSON form of an edge.
type edgeJSON struct {
	Relation  string    `json:"relation"`
	Field     string    `json:"field"`
	Group     string    `json:"group,omitempty"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
	Error     string    `json:"error,omitempty"`
}

// MarshalJSON returns the kind, namespace, name, UID and readiness of the object, without its remaining fields.
func (e Entry) MarshalJSON() ([]byte, error) {
	resource := e.APIResource()
	apiVersion, kind := resource.GVK.ToAPIVersionAndKind()
	return json.Marshal(entryJSON{apiVersion, resource.GVR.Resource, kind, e.Namespace, e.Name, e.UID(), e.Readiness()})
}

// MarshalJSON returns the fields of the edge, and of Entry the UID.
func (e Edge) MarshalJSON() ([]byte, error) {
	form := edgeJSON{e.Relation, e.Field, e.Kind.Group, e.Kind.Kind, e.Namespace, e.Name, "", ""}
	if e.Err != nil {
		form.Error = e.Err.Error()
	} else {
		form.UID = e.Entry.UID()
	}
	return json.Marshal(form)
}
