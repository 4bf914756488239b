package informers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Core is the group version of ConfigMaps.
var Core = schema.GroupVersion{Version: "v1"}

// ConfigMap has the metadata of a ConfigMap. Package k8s.io/api/core/v1 takes minutes to compile for each version.
type ConfigMap struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

// ConfigMapList is a list of ConfigMaps.
type ConfigMapList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ConfigMap `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (c *ConfigMap) DeepCopyObject() runtime.Object {
	return &ConfigMap{c.TypeMeta, *c.ObjectMeta.DeepCopy()} //nolint:staticcheck // the metadata alone is copied
}

// DeepCopyObject implements runtime.Object.
func (l *ConfigMapList) DeepCopyObject() runtime.Object {
	list := &ConfigMapList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()} //nolint:staticcheck // not DeepCopy of the list
	for i := range l.Items {
		list.Items = append(list.Items, ConfigMap{l.Items[i].TypeMeta, *l.Items[i].ObjectMeta.DeepCopy()}) //nolint:staticcheck // not DeepCopy of the object
	}
	return list
}

// Scheme returns a scheme with the types above.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(Core, &ConfigMap{}, &ConfigMapList{})
	metav1.AddToGroupVersion(scheme, Core)
	return scheme
}
