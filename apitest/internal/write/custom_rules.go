package write

import (
	"context"
	"fmt"
	"maps"
	"math"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/structural"
)

// customRules implements rules for a custom resource.
type customRules struct {
	writer   *Writer
	resource *kinds.Resource
	schema   *structural.Schema
	hasState bool // has a status subresource
	scale    *kinds.ScalePaths
}

func newCustomRules(w *Writer, resource *kinds.Resource) *customRules {
	schema := resource.Schema()
	if schema == nil {
		schema = structural.Compile(map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}, nil)
	}
	r := &customRules{writer: w, resource: resource, schema: schema}
	_, r.hasState = resource.Subresources["status"]
	if scale, ok := resource.Subresources["scale"]; ok {
		r.scale = scale.Scale
	}
	return r
}

func (r *customRules) strategy() *strategy { return customStrategy }

func (r *customRules) coerce(_ *operation, obj map[string]any) (decoded map[string]any, unknown []string, err error) {
	if kind := (&unstructuredv1.Unstructured{Object: obj}).GroupVersionKind(); kind.GroupKind() != r.resource.GroupVersionKind().GroupKind() {
		return obj, nil, nil // rejected later
	}
	r.schema.Default(obj)
	paths, err := r.schema.Prune(obj)
	for _, path := range paths {
		unknown = append(unknown, fmt.Sprintf("unknown field %q", path))
	}
	return obj, unknown, err
}

func (r *customRules) setDefaults(obj map[string]any) { r.schema.Default(obj) }

// fromStorage prunes and defaults by the schema of the stored version, then converts to the requested version and prunes again.
func (r *customRules) fromStorage(ctx context.Context, obj map[string]any) error {
	metadata := nested.Map(obj, "metadata")
	maps.DeleteFunc(metadata, func(_ string, value any) bool { return value == nil }) // apply stores nulls
	want := r.resource.APIVersion()
	if stored := nested.String(obj, "apiVersion"); stored != want {
		if gv, err := schema.ParseGroupVersion(stored); err == nil {
			if other := r.writer.registry.Lookup(gv.Group, gv.Version, r.resource.Plural); other != nil {
				if err := r.writer.rulesOf(other).fromStorage(ctx, obj); err != nil {
					return err
				}
			}
		}
		err := r.writer.admission.Convert(ctx, r.resource.Definition, obj, want)
		_, _ = r.schema.Prune(obj)
		return err
	}
	r.schema.PruneStored(obj)
	r.schema.Default(obj)
	return nil
}

// toStorage converts to the storage version and prunes: fields unknown to the storage version are lost. Its defaults are set at
// the next write.
func (r *customRules) toStorage(ctx context.Context, obj map[string]any) error {
	want := storageVersion(r.resource)
	if obj["apiVersion"] == want {
		return nil
	}
	if err := r.writer.admission.Convert(ctx, r.resource.Definition, obj, want); err != nil {
		return err
	}
	if stored := r.writer.registry.Lookup(r.resource.Group, r.resource.StorageVersion, r.resource.Plural); stored != nil {
		if rules, isCustom := r.writer.rulesOf(stored).(*customRules); isCustom {
			_, _ = rules.schema.Prune(obj)
		}
	}
	return nil
}

func (r *customRules) prepareCreate(_ *operation, obj *unstructuredv1.Unstructured) {
	if r.hasState {
		delete(obj.Object, "status")
	}
	obj.SetGeneration(1)
}

func (r *customRules) prepareUpdate(op *operation, obj, old *unstructuredv1.Unstructured) {
	if op.subresource == "status" {
		status, found := obj.Object["status"]
		managed := obj.GetManagedFields()
		obj.Object = old.DeepCopy().Object
		obj.SetManagedFields(managed)
		setOrDelete(obj.Object, "status", status, found)
		return
	}
	if r.hasState {
		status, found := old.DeepCopy().Object["status"]
		setOrDelete(obj.Object, "status", status, found)
	}
	if !equality.Semantic.DeepEqual(withoutMetadata(obj.Object), withoutMetadata(old.Object)) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}

func setOrDelete(obj map[string]any, name string, value any, found bool) {
	if found {
		obj[name] = value
	} else {
		delete(obj, name)
	}
}

func withoutMetadata(obj map[string]any) map[string]any {
	content := make(map[string]any, len(obj))
	for name, value := range obj {
		if name != "metadata" {
			content[name] = value
		}
	}
	return content
}

func (r *customRules) validate(op *operation, obj, old *unstructuredv1.Unstructured) field.ErrorList {
	metadata := field.NewPath("metadata")
	var before map[string]any
	if old != nil {
		before = old.Object
	}
	errs := r.validateType(obj)
	switch {
	case len(errs) > 0:
		errs = append(errs, r.schema.ValidateParts(obj.Object, before)...)
	case old == nil:
		errs = ownerTexts(validation.ValidateObjectMetaAccessor(obj, r.resource.Namespaced, validation.NameIsDNSSubdomain, metadata))
		errs = append(errs, r.schema.Validate(obj.Object, nil)...)
		errs = append(errs, r.validateScale(obj, true)...)
	case op.subresource == "status":
		errs = ownerTexts(validation.ValidateObjectMetaAccessorUpdate(obj, old, metadata))
		errs = append(errs, r.schema.ValidateStatus(obj.Object, old.Object)...)
		errs = append(errs, r.validateScale(obj, false)...)
	default:
		errs = ownerTexts(validation.ValidateObjectMetaAccessorUpdate(obj, old, metadata))
		errs = append(errs, r.schema.Validate(obj.Object, old.Object)...)
		errs = append(errs, r.validateScale(obj, true)...)
	}
	op.warnNotValidated(r.schema.NotValidated())
	if r.resource.IsUntyped {
		op.warnNotValidated("the object, since the server has no schema of its kind")
	}
	return append(errs, r.schema.ValidateRules(op.ctx, errs, obj.Object, before)...)
}

func (r *customRules) validateType(obj *unstructuredv1.Unstructured) field.ErrorList {
	var errs field.ErrorList
	if kind := obj.GetKind(); kind != r.resource.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), kind, "must be "+r.resource.Kind))
	}
	if version := obj.GetAPIVersion(); version != r.resource.APIVersion() {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), version, "must be "+r.resource.APIVersion()))
	}
	return errs
}

// warnFinalizers adds finalizerWarnings for a custom resource's new finalizers.
func (op *operation) warnFinalizers(obj, old *unstructuredv1.Unstructured) {
	if op.resource.Definition == nil || op.subresource != "" {
		return
	}
	for _, text := range finalizerWarnings(obj, old) {
		op.warn(text)
	}
}

// finalizerWarnings returns warnings for new finalizers that are not qualified names or have no domain.
func finalizerWarnings(obj, old *unstructuredv1.Unstructured) []string {
	known := map[string]bool{metav1.FinalizerOrphanDependents: true, metav1.FinalizerDeleteDependents: true, "kubernetes": true}
	if old != nil {
		for _, name := range old.GetFinalizers() {
			known[name] = true
		}
	}
	names := obj.GetFinalizers()
	sort.Strings(names)
	var texts []string
	for _, name := range names {
		if known[name] {
			continue
		}
		known[name] = true
		for _, text := range utilvalidation.IsQualifiedName(name) {
			texts = append(texts, fmt.Sprintf("metadata.finalizers: %q: %s", name, text))
		}
		if !strings.Contains(name, "/") {
			including := ""
			if strings.Contains(name, ".") {
				including = " including a path (/)"
			}
			texts = append(texts, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name%s to avoid accidental conflicts with other finalizer writers", name, including))
		}
	}
	return texts
}

// validateScale checks the fields behind the scale subresource. The spec is checked only if spec is true.
func (r *customRules) validateScale(obj *unstructuredv1.Unstructured, spec bool) field.ErrorList {
	if r.scale == nil {
		return nil
	}
	var errs field.ErrorList
	if spec {
		errs = append(errs, validateReplicas(obj, r.scale.SpecReplicas)...)
	}
	errs = append(errs, validateReplicas(obj, r.scale.StatusReplicas)...)
	if path := r.scale.LabelSelector; path != "" {
		if selector, _, err := unstructuredv1.NestedString(obj.Object, splitPath(path)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(path), selector, err.Error()))
		}
	}
	return errs
}

func validateReplicas(obj *unstructuredv1.Unstructured, path string) field.ErrorList {
	replicas, _, err := unstructuredv1.NestedInt64(obj.Object, splitPath(path)...)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(field.NewPath(path), replicas, err.Error())}
	case replicas < 0:
		return field.ErrorList{field.Invalid(field.NewPath(path), replicas, "should be a non-negative integer")}
	case replicas > math.MaxInt32:
		return field.ErrorList{field.Invalid(field.NewPath(path), replicas, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32))}
	}
	return nil
}

// splitPath returns the fields of a path such as ".spec.replicas".
func splitPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
