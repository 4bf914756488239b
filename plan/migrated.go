package plan

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/managedfields"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// migrate returns the response for an object whose fields move to the field manager before the apply ([Options.Migrates]). Conflicts with
// the selected managers alone are none unless [Options.MigratesLater]. Fields that only they own leave the object: a dry run of an
// update has the server's result.
func (p *planner) migrate(ctx context.Context, dryRun *dynamic.Resource, it *item, found response) response {
	if p.options.Migrates == nil || p.options.Set != nil || it.Live == nil || found.planned == nil || (p.options.MigratesLater && found.err != nil) {
		return found
	}
	selects := p.options.Migrates(it.Live)
	for _, conflict := range found.conflicts {
		if found.err != nil && !selects(conflict.ManagedFieldsEntry()) {
			return found
		}
	}
	var stay map[string]any
	if !p.options.MigratesLater {
		stay = managedfields.Path("f:metadata", "f:annotations", "f:"+lastApplied)
	}
	left, kept, err := leftFields(it.Live, found.planned, stay, selects)
	if err != nil {
		return found // the migration leaves malformed managedFields alone
	}
	if found.err != nil {
		found.conflicts = nil
		found.err = nil
	}
	if len(left) == 0 {
		return found
	}
	want := found.planned.DeepCopy()
	managedfields.Remove(want.Object, left, kept)
	ctx, _ = transport.CollectWarnings(ctx) // those of the apply are known
	updated, err := dryRun.Update(ctx, want, nil)
	if err != nil {
		found.planned = nil
		found.err = err
		return found
	}
	updated.SetManagedFields(found.planned.GetManagedFields()) // without the update's own entry
	found.planned = updated
	return found
}

// leftFields returns the fields of the selected managers of live that nobody owns after the apply, and all owned fields with those of
// stay. Entries of further API versions are left out.
func leftFields(live, planned *unstructured.Object, stay map[string]any, selects func(metav1.ManagedFieldsEntry) bool) (left, kept map[string]any, err error) {
	before, err := managedfields.Read(live.Object)
	if err != nil {
		return nil, nil, err
	}
	after, err := managedfields.Read(planned.Object)
	if err != nil {
		return nil, nil, err
	}
	isSelected := func(e managedfields.Entry) bool { return selects(e.ManagedFieldsEntry()) }
	kept = stay
	for _, e := range after {
		if !isSelected(e) {
			kept = managedfields.Union(kept, e.Fields)
		}
	}
	for _, e := range before {
		if e.Subresource == "" && e.APIVersion == live.GetAPIVersion() && isSelected(e) {
			left = managedfields.Union(left, e.Fields)
		}
	}
	return managedfields.Difference(left, kept), kept, nil
}
