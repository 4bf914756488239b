package write

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/anykind/anykind/apitest/internal/builtin"
)

// fieldManager returns the field manager of the request's kind and subresource.
func (op *operation) fieldManager() (*managedfields.FieldManager, error) {
	kind := op.kindOf(op.resource)
	kind.mu.Lock()
	defer kind.mu.Unlock()
	if manager := kind.managers[op.subresource]; manager != nil {
		return manager, nil
	}
	manager, err := op.newFieldManager()
	if err != nil {
		return nil, err
	}
	kind.managers[op.subresource] = manager
	return manager, nil
}

func (op *operation) newFieldManager() (*managedfields.FieldManager, error) {
	kind := op.kind()
	objects := objectRules{op}
	if kind != op.resource.GroupVersionKind() { // a Scale has scalar fields only, so any type converter works
		return managedfields.NewDefaultFieldManager(managedfields.NewDeducedTypeConverter(), objects, noDefaults{}, objects, kind,
			kind.GroupVersion(), op.subresource, nil)
	}
	converter, err := op.resource.TypeConverter()
	if err != nil {
		return nil, err
	}
	if op.resource.Definition != nil {
		return managedfields.NewDefaultCRDFieldManager(converter, objects, objects, objects, kind, kind.GroupVersion(), op.subresource, op.resetFields())
	}
	return managedfields.NewDefaultFieldManager(converter, objects, objects, objects, kind, kind.GroupVersion(), op.subresource, op.resetFields())
}

// resetFields returns the fields ignored in requests to the resource or subresource. They are never owned by the request's
// manager.
func (op *operation) resetFields() map[fieldpath.APIVersion]fieldpath.Filter {
	var paths [][]string
	_, hasStatus := op.resource.Subresources["status"]
	switch op.subresource {
	case "":
		if hasStatus {
			paths = [][]string{{"status"}}
		}
	case "status":
		paths = op.rules.strategy().statusResets
		if paths == nil {
			paths = [][]string{{"spec"}}
		}
	case "approval":
		paths = [][]string{{"spec"}, {"status", "certificate"}}
	case "finalize":
		paths = [][]string{{"status"}}
	}
	if len(paths) == 0 {
		return nil
	}
	set := fieldpath.NewSet()
	for _, path := range paths {
		parts := make([]any, len(path))
		for i, part := range path {
			parts[i] = part
		}
		set.Insert(fieldpath.MakePathOrDie(parts...))
	}
	filters := map[fieldpath.APIVersion]fieldpath.Filter{}
	for _, version := range op.registry.Versions(op.resource.Group, op.resource.Plural) {
		_, hasStatus := version.Subresources["status"]
		if op.resource.Definition != nil && (op.subresource == "" || !hasStatus) {
			continue // versions except the request's reset fields only for subresource status, if they have it
		}
		filters[fieldpath.APIVersion(version.APIVersion())] = fieldpath.NewExcludeSetFilter(set)
	}
	filters[fieldpath.APIVersion(op.resource.APIVersion())] = fieldpath.NewExcludeSetFilter(set)
	return filters
}

// manage updates the managed fields of obj by its changes.
func (op *operation) manage(live, obj *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
	if op.isUntyped { // not convertible
		obj.SetManagedFields(nil)
		return obj, nil
	}
	manager, err := op.fieldManager()
	if err != nil {
		return nil, err
	}
	if live.GetUID() == "" {
		live = op.zero()
	}
	updated, err := manager.Update(live, obj, op.manager)
	if err != nil {
		obj.SetManagedFields(nil)
		return obj, nil //nolint:nilerr // like the server, for an object that a version cannot express
	}
	result := updated.(*unstructuredv1.Unstructured)
	op.stampManagedFields(live, result)
	return result, nil
}

// apply merges an applied configuration into live.
func (op *operation) apply(live, patch *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
	manager, err := op.fieldManager()
	if err != nil {
		return nil, err
	}
	if live.GetUID() == "" {
		live = op.zero()
	}
	merged, err := manager.Apply(live, patch, op.options.fieldManager, op.options.force)
	if err != nil {
		return nil, err
	}
	obj := merged.(*unstructuredv1.Unstructured)
	if op.resource.Definition == nil {
		if _, _, err := builtin.Decode(op.kind(), obj.Object); err != nil { // the type converter is less strict than Go types
			return nil, fmt.Errorf("failed to convert new object (%s/%s; %s) to proper version: unable to convert unstructured object to %[3]s: %[4]s",
				patch.GetNamespace(), patch.GetName(), op.kind(), unstructuredText(err.Error()))
		}
	}
	op.stampManagedFields(live, obj)
	return obj, nil
}

// stampManagedFields sets the time of new managedFields entries to the server's clock.
func (op *operation) stampManagedFields(live, obj *unstructuredv1.Unstructured) {
	entries := obj.GetManagedFields()
	if len(entries) == 0 {
		return
	}
	known := map[time.Time]bool{}
	for _, entry := range live.GetManagedFields() {
		if entry.Time != nil {
			known[entry.Time.UTC()] = true
		}
	}
	now := metav1.NewTime(op.now().UTC().Truncate(time.Second))
	for i := range entries {
		if entries[i].Time != nil && !known[entries[i].Time.UTC()] {
			entries[i].Time = &now
		}
	}
	slices.SortStableFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(seconds(a.Time), seconds(b.Time)))
	})
	obj.SetManagedFields(entries)
}

func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}

// zero returns an empty object of the request's kind, as its Go type encodes it.
func (op *operation) zero() *unstructuredv1.Unstructured {
	obj := op.empty()
	if op.resource.Definition == nil || op.subresource == "scale" {
		if decoded, _, err := builtin.Decode(op.kind(), obj.Object); err == nil {
			obj.Object = decoded
		}
	}
	return obj
}

// objectRules implements the conversion and defaulting of a kind for its field manager.
type objectRules struct{ op *operation }

func (o objectRules) Default(obj runtime.Object) {
	u, ok := obj.(*unstructuredv1.Unstructured)
	switch {
	case !ok:
	case o.op.resource.Definition != nil:
		o.op.rules.setDefaults(u.Object) // keeps nulls, unlike decoding
	default:
		if decoded, _, err := o.op.coerce(u.Object); err == nil {
			u.Object = decoded
		}
	}
}

func (o objectRules) New(schema.GroupVersionKind) (runtime.Object, error) { return o.op.zero(), nil }

func (objectRules) Convert(_, _, _ any) error { return nil }

func (o objectRules) ConvertToVersion(obj runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	u, ok := obj.(*unstructuredv1.Unstructured)
	version, isVersion := target.(schema.GroupVersion)
	if !ok || !isVersion {
		return obj, nil
	}
	if o.op.resource.Definition != nil && o.op.subresource == "scale" && u.GetName() == "" { // like the server
		return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", version)
	}
	if u.GetAPIVersion() == version.String() {
		return obj, nil
	}
	converted := u.DeepCopy()
	if o.op.resource.Definition == nil {
		builtin.Convert(converted.Object, version)
		return converted, nil
	}
	ctx := context.WithoutCancel(o.op.ctx) // the field manager is that of later operations, too
	return converted, o.op.admission.Convert(ctx, o.op.resource.Definition, converted.Object, version.String())
}

func (objectRules) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}
