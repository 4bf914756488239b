package write

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/nested"
)

const templateGeneration = "deprecated.daemonset.template.generation"

// builtinRules implements rules for a built-in kind.
type builtinRules struct {
	resource   *kinds.Resource
	properties *strategy
}

func newBuiltinRules(resource *kinds.Resource) *builtinRules {
	return &builtinRules{resource: resource, properties: builtinStrategy(resource.Group, resource.Plural)}
}

func (r *builtinRules) strategy() *strategy { return r.properties }

func (r *builtinRules) coerce(op *operation, obj map[string]any) (decoded map[string]any, unknown []string, err error) {
	return op.coerceBuiltin(r.resource.GroupVersionKind(), obj)
}

// coerceBuiltin decodes an object of a built-in kind, warns about its empty fields and sets its defaults.
func (op *operation) coerceBuiltin(kind schema.GroupVersionKind, obj map[string]any) (decoded map[string]any, unknown []string, err error) {
	managed, hasManaged, _ := unstructuredv1.NestedSlice(obj, "metadata", "managedFields")
	decoded, paths, empty, err := builtin.DecodeWrite(kind, op.subresource, obj)
	op.warnFields(empty)
	if err != nil {
		return nil, nil, err
	}
	for _, path := range paths {
		unknown = append(unknown, fmt.Sprintf("unknown field %q", path))
	}
	if hasManaged && len(managed) == 0 { // an empty list resets the managed fields
		nested.EnsureMap(decoded, "metadata")["managedFields"] = []any{}
	}
	builtin.Default(kind, decoded)
	builtin.Normalize(kind, decoded)
	if kind.Group == "apps" && kind.Kind == "DaemonSet" { // the conversion adds it
		annotations := nested.EnsureMap(decoded, "metadata", "annotations")
		if _, found := annotations[templateGeneration]; !found {
			annotations[templateGeneration] = "0"
		}
	}
	return decoded, unknown, nil
}

func (r *builtinRules) fromStorage(_ context.Context, obj map[string]any) error {
	builtin.Convert(obj, r.resource.GroupVersionKind().GroupVersion())
	return nil
}

// toStorage converts to the storage version and sets empty lists to null, because Protobuf does not distinguish them.
func (r *builtinRules) toStorage(_ context.Context, obj map[string]any) error {
	if version, err := schema.ParseGroupVersion(storageVersion(r.resource)); err == nil {
		builtin.Convert(obj, version)
	}
	if r.resource.Group == definitionGroup || r.resource.Group == "apiregistration.k8s.io" { // stored as JSON
		return nil
	}
	for name, value := range obj {
		obj[name] = withoutEmptyLists(value)
	}
	return nil
}

func withoutEmptyLists(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			value[name] = withoutEmptyLists(field)
		}
	case []any:
		if len(value) == 0 {
			return nil
		}
		for i, item := range value {
			value[i] = withoutEmptyLists(item)
		}
	}
	return value
}

func (r *builtinRules) setDefaults(obj map[string]any) {
	builtin.Default(r.resource.GroupVersionKind(), obj)
}

func (r *builtinRules) prepareCreate(op *operation, obj *unstructuredv1.Unstructured) {
	if r.resource.Plural == "daemonsets" && obj.GetAnnotations()[templateGeneration] == "0" {
		unstructuredv1.RemoveNestedField(obj.Object, "metadata", "annotations", templateGeneration)
	}
	builtin.PrepareForCreate(r.resource.GroupResource(), obj.Object)
	if r.resource.Plural == "certificatesigningrequests" {
		op.setRequestor(obj)
	}
}

func (r *builtinRules) prepareUpdate(op *operation, obj, old *unstructuredv1.Unstructured) {
	switch op.subresource {
	case "ephemeralcontainers", "resize":
		if op.subresource == "resize" || !equality.Semantic.DeepEqual(obj.Object["spec"], old.Object["spec"]) {
			op.warnFields([]string{"spec"})
		}
		if op.subresource == "resize" {
			keepExceptResources(obj, old)
		} else {
			keepExceptEphemeral(obj, old)
		}
	case "approval":
		keepExceptConditions(op, obj, old)
		return
	}
	subresource := op.subresource
	if subresource != "status" && subresource != "finalize" {
		subresource = ""
	}
	builtin.PrepareForUpdate(r.resource.GroupResource(), subresource, obj.Object, old.DeepCopy().Object)
}

func (r *builtinRules) validate(op *operation, obj, old *unstructuredv1.Unstructured) field.ErrorList {
	errs := r.validateMetadata(obj, old, op.subresource)
	if r.resource.Group == "" && r.resource.Plural == "services" && op.subresource == "" {
		var before map[string]any
		if old != nil {
			before = old.Object
		}
		if failed := builtin.AllocateService(obj.Object, before, op.services()); len(failed) > 0 {
			return append(errs, failed...)
		}
	}
	var before map[string]any
	if old != nil {
		before = old.Object
	}
	failed, notValidated := builtin.Validate(r.resource.GroupResource(), op.subresource, obj.Object, before)
	errs = append(errs, failed...)
	op.warnFields(notValidated)
	if op.subresource != "" || len(errs) > 0 {
		return errs
	}
	if r.resource.Plural == "customresourcedefinitions" {
		if errs = op.validateRules(obj.Object, before); len(errs) > 0 {
			return errs
		}
	}
	for _, text := range builtin.Warnings(r.resource.GroupResource(), obj.Object, before) {
		op.warn(text)
	}
	return errs
}

func (op *operation) warnFields(paths []string) {
	for _, path := range paths {
		op.warn(builtin.FieldWarning(path))
	}
}

// validateMetadata runs the metadata checks of the kind's own validation, in addition to the checks of all kinds.
func (r *builtinRules) validateMetadata(obj, old *unstructuredv1.Unstructured, subresource string) (errs field.ErrorList) {
	if r.properties.commonMetadata {
		return nil
	}
	if old == nil {
		errs = ownerTexts(validation.ValidateObjectMetaAccessor(obj, r.resource.Namespaced, r.properties.nameRule(), field.NewPath("metadata")))
	}
	if check := r.properties.finalizers; check == alwaysChecked || check == checkedWithoutStatus && subresource != "status" {
		errs = append(errs, validateFinalizers(obj)...)
	}
	return errs
}

// validateFinalizers rejects finalizers that are neither standard nor qualified by a domain, as most built-in kinds do.
func validateFinalizers(obj *unstructuredv1.Unstructured) (errs field.ErrorList) {
	for i, name := range obj.GetFinalizers() {
		if !strings.Contains(name, "/") && name != metav1.FinalizerOrphanDependents && name != metav1.FinalizerDeleteDependents && name != "kubernetes" {
			at := field.NewPath("metadata", "finalizers").Index(i)
			errs = append(errs, field.Invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// services iterates over the stored services, for the allocation of addresses and ports.
func (op *operation) services() iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		services, _, _ := op.store.List("", "services", "", 0)
		for _, service := range services {
			if !yield(service) {
				return
			}
		}
	}
}
