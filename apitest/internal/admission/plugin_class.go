package admission

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/apitest/internal/nested"
)

const (
	storageGroup           = "storage.k8s.io"
	networkingGroup        = "networking.k8s.io"
	storageClassAnnotation = "volume.beta.kubernetes.io/storage-class"
	ingressClassAnnotation = "kubernetes.io/ingress.class"
)

// setStorageClass sets the default storage class of a claim without a class.
func (r *pluginRequest) setStorageClass() {
	spec := nested.EnsureMap(r.Object, "spec")
	if _, annotated := nested.Map(r.Object, "metadata", "annotations")[storageClassAnnotation]; annotated || spec["storageClassName"] != nil {
		return
	}
	name := newestDefault(r.list(storageGroup, "storageclasses", ""),
		"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
	if name != "" {
		spec["storageClassName"] = name
	}
}

// setIngressClass sets the default ingress class of an ingress without a class.
func (r *pluginRequest) setIngressClass() {
	spec := nested.EnsureMap(r.Object, "spec")
	if _, annotated := nested.Map(r.Object, "metadata", "annotations")[ingressClassAnnotation]; annotated || spec["ingressClassName"] != nil {
		return
	}
	if name := newestDefault(r.list(networkingGroup, "ingressclasses", ""), "ingressclass.kubernetes.io/is-default-class"); name != "" {
		spec["ingressClassName"] = name
	}
}

// newestDefault returns the name of the newest class with a default annotation. Ties are broken by name.
func newestDefault(classes []map[string]any, annotations ...string) (name string) {
	newest := ""
	for _, class := range classes {
		metadata := nested.Map(class, "metadata")
		isDefault := slices.ContainsFunc(annotations, func(annotation string) bool {
			return nested.String(metadata, "annotations", annotation) == "true"
		})
		created := nested.String(metadata, "creationTimestamp")
		other := nested.String(metadata, "name")
		if isDefault && (name == "" || created > newest || created == newest && other < name) {
			name = other
			newest = created
		}
	}
	return name
}

// checkExpansion rejects an increase of a claim's storage request, unless the claim is bound and its class allows expansion.
func (r *pluginRequest) checkExpansion() error {
	if r.OldObject == nil {
		return nil
	}
	size := quantities(nested.Map(r.Object, "spec", "resources"), "requests")["storage"]
	if size.Cmp(quantities(nested.Map(r.OldObject, "spec", "resources"), "requests")["storage"]) <= 0 {
		return nil
	}
	if nested.String(r.OldObject, "status", "phase") != "Bound" {
		return errors.New("Only bound persistent volume claims can be expanded") //nolint:staticcheck // the API server's text
	}
	class := storageClassOf(r.Object)
	if class == "" || class != storageClassOf(r.OldObject) || r.find(storageGroup, "storageclasses", class)["allowVolumeExpansion"] != true {
		return errors.New("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
	}
	return nil
}

func storageClassOf(claim object) string {
	if name := nested.String(claim, "metadata", "annotations", storageClassAnnotation); name != "" {
		return name
	}
	return nested.String(claim, "spec", "storageClassName")
}

// runtimeClass returns the runtime class of the pod, nil if it has no class.
func (r *pluginRequest) runtimeClass() (object, error) {
	name := nested.String(r.Object, "spec", "runtimeClassName")
	if name == "" {
		return nil, nil
	}
	class := r.find("node.k8s.io", "runtimeclasses", name)
	if class == nil {
		return nil, fmt.Errorf("pod rejected: RuntimeClass %q not found", name)
	}
	return class, nil
}

var errOverhead = errors.New("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")

// setRuntimeClass adds the overhead, node selector and tolerations of the pod's runtime class.
func (r *pluginRequest) setRuntimeClass() error {
	class, err := r.runtimeClass()
	if class == nil {
		return err
	}
	spec := nested.EnsureMap(r.Object, "spec")
	if overhead := nested.Map(class, "overhead", "podFixed"); overhead != nil {
		if given := nested.Map(spec, "overhead"); len(given) > 0 && !sameQuantities(given, overhead) {
			return errOverhead
		}
		spec["overhead"] = runtime.DeepCopyJSON(overhead)
	}
	selector := nested.Map(spec, "nodeSelector")
	for _, name := range sortedKeys(nested.Map(class, "scheduling", "nodeSelector")) {
		value := nested.Map(class, "scheduling", "nodeSelector")[name]
		if given, found := selector[name]; found && given != value {
			return fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%[1]s] = %[3]s", name, value, given)
		}
		nested.EnsureMap(spec, "nodeSelector")[name] = value
	}
	mergeTolerations(spec, nested.Maps(class, "scheduling", "tolerations"))
	return nil
}

// mergeTolerations adds tolerations to a pod and removes redundant tolerations.
func mergeTolerations(spec object, added []object) {
	all := append(nested.Maps(spec, "tolerations"), added...)
	var merged []any
	for i, toleration := range all {
		isIn := func(other object) bool { return containsToleration(other, toleration) }
		isInOther := func(other object) bool { return isIn(other) && !equality.Semantic.DeepEqual(other, toleration) }
		isRedundant := slices.ContainsFunc(merged, func(other any) bool { return isIn(other.(object)) })
		if !isRedundant && !slices.ContainsFunc(all[i+1:], isInOther) {
			merged = append(merged, runtime.DeepCopyJSON(toleration))
		}
	}
	if merged != nil {
		spec["tolerations"] = merged
	}
}

// containsToleration reports whether a tolerates everything tolerated by b.
func containsToleration(a, b object) bool {
	switch {
	case equality.Semantic.DeepEqual(a, b):
		return true
	case nested.String(a, "key") != nested.String(b, "key") && (nested.String(a, "key") != "" || nested.String(a, "operator") != "Exists"):
		return false
	case nested.String(a, "effect") != nested.String(b, "effect") && nested.String(a, "effect") != "":
		return false
	}
	if seconds, limited := a["tolerationSeconds"].(int64); limited && nested.String(a, "effect") == "NoExecute" {
		if other, ok := b["tolerationSeconds"].(int64); !ok || other > seconds {
			return false
		}
	}
	if nested.String(a, "operator") == "Exists" {
		return true
	}
	return nested.String(b, "operator") == "Equal" && nested.String(a, "value") == nested.String(b, "value")
}

// checkOverhead rejects a pod with an overhead different from its runtime class.
func (r *pluginRequest) checkOverhead() error {
	class, err := r.runtimeClass()
	if err != nil {
		return err
	}
	given := nested.Map(r.Object, "spec", "overhead")
	defined := nested.Map(class, "overhead", "podFixed")
	switch {
	case defined == nil && given != nil:
		return errors.New("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
	case defined != nil && !sameQuantities(given, defined):
		return errOverhead
	}
	return nil
}

func sameQuantities(a, b object) bool {
	return equality.Semantic.DeepEqual(quantities(object{"": a}, ""), quantities(object{"": b}, ""))
}

func sortedKeys(obj object) []string {
	names := make([]string, 0, len(obj))
	for name := range obj {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// labelTopology copies the zone and region labels of the node to a pod or binding.
func (r *pluginRequest) labelTopology(node string) {
	if node == "" {
		return
	}
	labels := nested.Map(r.find("", "nodes", node), "metadata", "labels")
	for _, name := range []string{"topology.kubernetes.io/zone", "topology.kubernetes.io/region"} {
		if value, found := labels[name]; found {
			nested.EnsureMap(r.Object, "metadata", "labels")[name] = value
		}
	}
}
