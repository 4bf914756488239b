package write

import (
	"errors"
	"fmt"
	"math"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/anykind/anykind/apitest/internal/admission"
	"github.com/anykind/anykind/apitest/internal/kinds"
)

// missingReplicas is the value of a missing replicas field of an object.
const missingReplicas = math.MinInt32

// ScaleOf returns the Scale of an object.
func ScaleOf(resource *kinds.Resource, obj map[string]any) (map[string]any, error) {
	scale, found, err := newScale(resource, &unstructuredv1.Unstructured{Object: obj})
	if err != nil {
		return nil, statusError(err)
	}
	if !found && resource.Definition != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", scalePaths(resource).SpecReplicas))
	}
	return scale.Object, nil
}

func scalePaths(resource *kinds.Resource) kinds.ScalePaths {
	if sub := resource.Subresources["scale"]; sub.Scale != nil {
		return *sub.Scale
	}
	return kinds.ScalePaths{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"}
}

// newScale returns the Scale of an object. found is false if the object has no spec replicas.
func newScale(resource *kinds.Resource, obj *unstructuredv1.Unstructured) (scale *unstructuredv1.Unstructured, found bool, err error) {
	paths := scalePaths(resource)
	replicas, found, err := unstructuredv1.NestedInt64(obj.Object, splitPath(paths.SpecReplicas)...)
	if err != nil {
		return nil, false, err
	}
	current, _, err := unstructuredv1.NestedInt64(obj.Object, splitPath(paths.StatusReplicas)...)
	if err != nil {
		return nil, false, err
	}
	selector, err := scaleSelector(resource, paths, obj)
	if err != nil {
		return nil, false, err
	}
	spec := map[string]any{}
	status := map[string]any{"replicas": current}
	if replicas != 0 {
		spec["replicas"] = replicas
	}
	if selector != "" {
		status["selector"] = selector
	}
	scale = &unstructuredv1.Unstructured{Object: map[string]any{"spec": spec, "status": status}}
	scale.SetAPIVersion("autoscaling/v1")
	scale.SetKind("Scale")
	scale.SetName(obj.GetName())
	scale.SetNamespace(obj.GetNamespace())
	scale.SetUID(obj.GetUID())
	scale.SetResourceVersion(obj.GetResourceVersion())
	scale.SetCreationTimestamp(obj.GetCreationTimestamp())
	return scale, found, nil
}

func scaleSelector(resource *kinds.Resource, paths kinds.ScalePaths, obj *unstructuredv1.Unstructured) (string, error) {
	if resource.Definition != nil {
		if paths.LabelSelector == "" {
			return "", nil
		}
		selector, _, err := unstructuredv1.NestedString(obj.Object, splitPath(paths.LabelSelector)...)
		return selector, err
	}
	content, found, err := unstructuredv1.NestedMap(obj.Object, "spec", "selector")
	if err != nil || !found {
		return "", err
	}
	if resource.Plural == "replicationcontrollers" {
		set, _, err := unstructuredv1.NestedStringMap(obj.Object, "spec", "selector")
		return labels.SelectorFromSet(set).String(), err
	}
	var typed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &typed); err != nil {
		return "", err
	}
	selector, err := metav1.LabelSelectorAsSelector(&typed)
	if err != nil {
		return "", err
	}
	return selector.String(), nil
}

// updateScale applies a change of the Scale to the request's object.
func (op *operation) updateScale(change change, uid types.UID) (Result, error) {
	update := func(live *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
		return op.changeScale(live, change)
	}
	admit := func(obj, old *unstructuredv1.Unstructured) error {
		scale, _, err := newScale(op.resource, obj)
		if err != nil {
			return err
		}
		oldScale, _, err := newScale(op.resource, old)
		if err != nil {
			return err
		}
		return op.admit(admission.Update, op.req.Name, scale, oldScale)
	}
	obj, _, err := op.guaranteedUpdate(update, admit, uid, false)
	if err != nil {
		return Result{}, err
	}
	scale, _, err := newScale(op.resource, obj)
	if err != nil {
		return Result{}, apierrors.NewBadRequest(err.Error())
	}
	return Result{Object: scale.Object, Code: http.StatusOK}, nil
}

func (op *operation) changeScale(live *unstructuredv1.Unstructured, change change) (*unstructuredv1.Unstructured, error) {
	paths := scalePaths(op.resource)
	handler := managedfields.NewScaleHandler(live.GetManagedFields(), op.resource.GroupVersionResource().GroupVersion(), op.scaleMappings())
	old, found, err := newScale(op.resource, live)
	if err != nil {
		return nil, err
	}
	if !found && op.resource.Definition != nil {
		if err := unstructuredv1.SetNestedField(old.Object, int64(missingReplicas), "spec", "replicas"); err != nil {
			return nil, err
		}
	}
	entries, err := handler.ToSubresource()
	if err != nil {
		return nil, err
	}
	old.SetManagedFields(entries)
	scale, err := change(old)
	if err != nil {
		return nil, err
	}
	if scale, err = op.mutate(admission.Update, op.req.Name, scale, old); err != nil {
		return nil, err
	}
	replicas, _, err := unstructuredv1.NestedInt64(scale.Object, "spec", "replicas")
	if err != nil {
		return nil, err
	}
	if replicas == missingReplicas {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", paths.SpecReplicas))
	}
	if op.resource.Definition == nil {
		if err := validateScaleObject(scale, replicas); err != nil {
			return nil, err
		}
	}
	obj := live.DeepCopy()
	if err := unstructuredv1.SetNestedField(obj.Object, replicas, splitPath(paths.SpecReplicas)...); err != nil {
		return nil, err
	}
	if uid := scale.GetUID(); uid != "" && uid != live.GetUID() && op.resource.Definition == nil {
		resource := schema.GroupResource{Group: op.resource.Group, Resource: op.resource.Plural + "/scale"}
		message := fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, live.GetUID())
		return nil, apierrors.NewConflict(resource, op.req.Name, errors.New(message))
	}
	if version := scale.GetResourceVersion(); version != "" || op.resource.Definition == nil {
		obj.SetResourceVersion(version)
	}
	entries, err = handler.ToParent(scale.GetManagedFields())
	if err != nil {
		return nil, err
	}
	obj.SetManagedFields(entries)
	return obj, nil
}

func validateScaleObject(scale *unstructuredv1.Unstructured, replicas int64) error {
	errs := ownerTexts(validation.ValidateObjectMetaAccessor(scale, true, validation.NameIsDNSSubdomain, field.NewPath("metadata")))
	errs = append(errs, validateFinalizers(scale)...)
	if replicas < 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "replicas"), replicas, validation.IsNegativeErrorMsg))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: "autoscaling", Kind: "Scale"}, scale.GetName(), errs)
	}
	return nil
}

// scaleMappings returns the path of the replicas for each version of the resource.
func (op *operation) scaleMappings() managedfields.ResourcePathMappings {
	mappings := managedfields.ResourcePathMappings{}
	for _, version := range op.registry.Versions(op.resource.Group, op.resource.Plural) {
		mappings[version.APIVersion()] = nil
		if _, ok := version.Subresources["scale"]; !ok {
			continue
		}
		var parts []any
		for _, part := range splitPath(scalePaths(version).SpecReplicas) {
			parts = append(parts, part)
		}
		if path, err := fieldpath.MakePath(parts...); err == nil {
			mappings[version.APIVersion()] = path
		}
	}
	return mappings
}
