package applyset

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// MigrateFields moves the fields of the selected managers of an object to the Apply entry of manager, like [Set.Adopt] without a set.
// The next apply by manager has no conflicts about these fields, and removes those that its configuration lacks. client-go's csaupgrade
// does this for objects of kubectl's client-side apply.
//
// selects is called with entries without FieldsV1. MigrateFields returns the stored object, or nil if there is nothing to move. After
// a conflict it reads the object again. reason names fields that stay with their managers. The annotation
// kubectl.kubernetes.io/last-applied-configuration is removed with its last owner.
func MigrateFields(ctx context.Context, client *dynamic.Client, live *unstructured.Object, manager string,
	selects func(metav1.ManagedFieldsEntry) bool,
) (stored *unstructured.Object, reason string, err error) {
	resource, err := client.ForKind(ctx, live.GroupVersionKind())
	if err != nil {
		return nil, "", err
	}
	if resource.APIResource().Namespaced {
		resource = resource.Namespace(live.GetNamespace())
	}
	m := migration{client: client, manager: manager, selects: selects}
	current := live
	err = dynamic.RetryOnConflict(ctx, func(ctx context.Context) (err error) {
		if current == nil {
			if current, err = resource.Get(ctx, live.GetName(), nil); err != nil {
				return err
			}
		}
		stored, reason, err = m.migrate(ctx, resource, current)
		current = nil
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("move the fields of %s %q to %q: %w", resource, live.GetName(), manager, err)
	}
	return stored, reason, nil
}

// migrate returns the stored object, and nil if there is nothing to move.
func (m migration) migrate(ctx context.Context, resource *dynamic.Resource, live *unstructured.Object) (stored *unstructured.Object, reason string, err error) {
	metadata, reason, err := m.metadata(ctx, resource, live)
	if err != nil || len(metadata) == 0 {
		return nil, reason, err
	}
	patch, err := metadataPatch(live, metadata)
	if err != nil {
		return nil, reason, err
	}
	stored, err = m.send(ctx, resource, live.GetName(), patch)
	return stored, reason, err
}
