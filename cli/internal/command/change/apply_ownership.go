package change

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// lastAppliedManager is kubectl's manager of the annotation.
const lastAppliedManager = "kubectl-last-applied"

// Warnings of kubectl about steps after a successful apply. The next apply repeats them.
const (
	lastAppliedWarning = "Warning: failed to migrate " + command.LastApplied + " for Server-Side Apply. This is non-fatal and will be retried next time you apply. Error: %s"
	migrationWarning   = "Warning: server rejected managed fields migration to Server-Side Apply. This is non-fatal and will be retried next time you apply. Error: %s"
	reapplyWarning     = "Warning: failed to re-apply configuration after performing Server-Side Apply migration. This is non-fatal and will be retried next time you apply. Error: %s"
)

// ownership applies an object and takes over the fields that kubectl apply owns, as kubectl apply --server-side takes them over from
// kubectl's client-side apply:
//
//   - Managers whose Update entry has the annotation last-applied-configuration are of a client-side apply. Their fields move to the
//     Apply entry of manager, and the object is applied again: the server removes fields that left the configuration.
//   - With the program's own manager, the fields of kubectl apply --server-side move, too. Conflicts with these managers alone move the
//     fields before the apply.
//   - With the program's own manager, an existing annotation gets the applied configuration. For the manager kubectl, the server does
//     this itself. Its owner is kubectl-last-applied, as in kubectl. With a manager of --field-manager, the annotation is removed.
type ownership struct {
	state    *command.State
	resource *dynamic.Resource
	manager  string
	// isDefault means [command.State.IsDefaultManager].
	isDefault bool
	// isReadOnly means a dry run or a subresource: no fields are moved.
	isReadOnly bool
}

func (o *ownership) apply(ctx context.Context, obj *unstructured.Object, force bool) (*unstructured.Object, error) {
	applied, err := o.resource.Apply(ctx, obj, &metav1.ApplyOptions{Force: force})
	var conflict *dynamic.ApplyConflictError
	if o.isDefault && errors.As(err, &conflict) {
		applied, err = o.resolve(ctx, obj, conflict)
	}
	if err != nil || o.isReadOnly {
		return applied, err
	}
	return o.migrate(ctx, obj, applied), nil
}

// resolve applies an object again after a conflict with managers of kubectl apply alone. It returns any other conflict.
func (o *ownership) resolve(ctx context.Context, obj *unstructured.Object, conflict *dynamic.ApplyConflictError) (*unstructured.Object, error) {
	live, err := o.resource.Get(ctx, obj.GetName(), nil)
	if err != nil {
		return nil, errors.Join(conflict, err)
	}
	if version := obj.GetResourceVersion(); version != "" && version != live.GetResourceVersion() {
		resource := o.resource.APIResource().GVR.GroupResource()
		return nil, apierrors.NewConflict(resource, obj.GetName(), errors.New("the object has been modified"))
	}
	obj = withoutVersion(obj)
	selects := command.KubectlManagers(live, o.isDefault)
	for _, c := range conflict.Conflicts {
		if !selects(c.ManagedFieldsEntry()) {
			return nil, conflict
		}
	}
	if !o.isReadOnly {
		if live, err = o.saveLastApplied(ctx, live, live.GetAnnotations()[command.LastApplied]); err == nil {
			_, err = o.move(ctx, live, selects)
		}
		if err != nil {
			return nil, errors.Join(conflict, err)
		}
	}
	return o.resource.Apply(ctx, obj, &metav1.ApplyOptions{Force: o.isReadOnly})
}

// migrate moves fields and updates the annotation after a successful apply. Errors are warnings.
func (o *ownership) migrate(ctx context.Context, obj, applied *unstructured.Object) *unstructured.Object {
	obj = withoutVersion(obj)
	selects := command.KubectlManagers(applied, o.isDefault)
	if o.isDefault && obj.GetAnnotations()[command.LastApplied] == "" {
		data, err := json.Marshal(obj.Object)
		var saved *unstructured.Object
		if err == nil {
			saved, err = o.saveLastApplied(ctx, applied, string(data)+"\n")
		}
		if err != nil {
			o.state.Errorf(lastAppliedWarning, err)
			return applied
		}
		applied = saved
	}
	moved, err := o.move(ctx, applied, selects)
	if err != nil {
		o.state.Errorf(migrationWarning, err)
	}
	if moved == nil {
		return applied
	}
	reapplied, err := o.resource.Apply(ctx, obj, nil)
	if err != nil {
		o.state.Errorf(reapplyWarning, err)
		return moved
	}
	return reapplied
}

// withoutVersion returns a copy without the resourceVersion, which the requests of a migration change.
func withoutVersion(obj *unstructured.Object) *unstructured.Object {
	plain := obj.DeepCopy()
	plain.SetResourceVersion("")
	return plain
}

// move returns the stored object, and nil if there is nothing to move.
func (o *ownership) move(ctx context.Context, live *unstructured.Object, selects func(metav1.ManagedFieldsEntry) bool) (*unstructured.Object, error) {
	if !slices.ContainsFunc(live.GetManagedFields(), selects) {
		return nil, nil
	}
	client, err := o.state.Client(ctx)
	if err != nil {
		return nil, err
	}
	stored, reason, err := applyset.MigrateFields(ctx, client, live, o.manager, selects)
	if reason != "" {
		o.state.Errorf("Warning: %s", reason)
	}
	return stored, err
}

// saveLastApplied stores the value of an existing annotation with kubectl's manager.
func (o *ownership) saveLastApplied(ctx context.Context, live *unstructured.Object, value string) (*unstructured.Object, error) {
	old, exists := live.GetAnnotations()[command.LastApplied]
	if !exists || old == value && command.LastAppliedOwners(live, metav1.ManagedFieldsOperationApply)[lastAppliedManager] {
		return live, nil
	}
	annotation := &unstructured.Object{Object: map[string]any{}}
	annotation.SetGroupVersionKind(live.GroupVersionKind())
	annotation.SetName(live.GetName())
	annotation.SetNamespace(live.GetNamespace())
	annotation.SetUID(live.GetUID()) // does not create an object that has been deleted meanwhile
	annotation.SetAnnotations(map[string]string{command.LastApplied: value})
	resource := o.resource.WithDefaults(&dynamic.Defaults{FieldManager: lastAppliedManager})
	return resource.Apply(ctx, annotation, &metav1.ApplyOptions{Force: true})
}
