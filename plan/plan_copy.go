package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// planByCopy applies all objects to a copy of the cluster, if the server cannot plan some of them.
func (p *planner) planByCopy(ctx context.Context) {
	isNeeded := map[*item]bool{}
	for _, it := range p.items {
		isNeeded[it] = !it.isAggregated && (it.unplannable != "" || it.doubt != "" || p.mayDepend(it))
	}
	hasNeed := false
	for _, needed := range isNeeded {
		hasNeed = hasNeed || needed
	}
	if !hasNeed || ctx.Err() != nil {
		return
	}
	var client *dynamic.Client
	var err error
	if p.options.Copy != nil {
		client, err = p.options.Copy(ctx)
	}
	if client == nil {
		p.withoutCopy(isNeeded, err)
		return
	}
	client = client.WithDefaults(&dynamic.Defaults{
		FieldManager: p.options.FieldManager, Namespace: p.options.Namespace, OnWarning: func(context.Context, string) {}, // collected
	})
	for _, it := range p.items {
		p.applyToCopy(ctx, client, it, isNeeded[it])
	}
}

// withoutCopy completes the responses of the server. err is the error of Options.Copy, nil without Copy.
func (p *planner) withoutCopy(isNeeded map[*item]bool, err error) {
	for _, it := range p.items {
		if !isNeeded[it] {
			continue
		}
		switch it.Action {
		case Replace:
			it.NotValidated = append(it.NotValidated, "the new object: the server checks it after the delete")
		case Rejected:
			it.Action = NotPlanned
			it.Reason = "it may need an object of this plan: " + it.Reason
		default:
		}
		if err != nil && it.Action == NotPlanned {
			it.Reason += "; copy of the cluster: " + message(err)
		}
	}
}

// mayDepend reports whether a rejected object may need an earlier object of the plan: a pod its ServiceAccount or PriorityClass, a
// binding its Role.
func (p *planner) mayDepend(it *item) bool {
	var owned *applyset.OwnedError
	if it.Action != Rejected || len(it.Conflicts) > 0 || it.resource == nil || apierrors.IsInvalid(it.Err) || errors.As(it.Err, &owned) {
		return false
	}
	for _, before := range p.items {
		if before == it {
			return false
		}
		if before.Action == Unchanged {
			continue
		}
		switch before.Object.Kind.Kind {
		case "ServiceAccount", "PriorityClass", "RuntimeClass", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ResourceQuota", "LimitRange":
			return true
		}
	}
	return false
}

// applyToCopy applies an object to the copy. The result is the plan if the server has no response.
func (p *planner) applyToCopy(ctx context.Context, client *dynamic.Client, it *item, isNeeded bool) {
	if ctx.Err() != nil || it.isAggregated || !isNeeded && (it.Action == Unchanged || it.Action == Rejected) {
		return
	}
	resource, err := p.copyResource(ctx, client, it)
	if err != nil {
		if isNeeded && it.resource == nil {
			it.Source = Copy
			it.reject(err)
		}
		return
	}
	var found response
	if it.Action != Replace {
		found = p.apply(ctx, resource, it.Want)
		if isNeeded && found.err != nil && p.isReplace(it, found.err) {
			p.record(it, found)
		}
	}
	if it.Action == Replace {
		p.replaceInCopy(ctx, resource, it)
		return
	}
	switch {
	case isNeeded && it.Action == Rejected && found.err != nil: // both reject it
	case isNeeded:
		p.recordFromCopy(it, found)
	case found.err != nil:
		it.NotValidated = append(it.NotValidated, "the copy of the cluster rejects it: "+message(it.withoutValues(found.err)))
	}
	if found.err == nil && it.Object.Kind == definitionKind {
		p.awaitEstablished(ctx, resource, it)
	}
}

// recordFromCopy sets the outcome of an object by the copy. The resourceVersion and the times of its managers are the cluster's.
func (p *planner) recordFromCopy(it *item, found response) {
	if found.planned != nil && it.Live != nil {
		found.planned.SetResourceVersion(it.Live.GetResourceVersion())
	}
	it.Source = Copy
	p.record(it, found)
	if it.Action == Configure && len(it.Fields) == 0 && sameManagers(it.Live, it.Planned) {
		it.Action = Unchanged
		it.Reason = ""
	}
}

// sameManagers reports whether two states of an object have the same managers of the same fields.
func sameManagers(a, b *unstructured.Object) bool {
	without := func(obj *unstructured.Object) string {
		entries := obj.GetManagedFields()
		for i := range entries {
			entries[i].Time = nil
		}
		return encode(entries)
	}
	return without(a) == without(b)
}

// replaceInCopy deletes and creates an object in the copy.
func (p *planner) replaceInCopy(ctx context.Context, resource *dynamic.Resource, it *item) {
	reason := it.Reason
	background := metav1.DeletePropagationBackground
	now := int64(0)
	_, err := resource.Delete(ctx, it.Object.Name, &metav1.DeleteOptions{PropagationPolicy: &background, GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		it.Source = Copy
		it.reject(err)
		return
	}
	if remaining, err := resource.Get(ctx, it.Object.Name, nil); err == nil {
		if remaining.SetFinalizers(nil); len(it.Live.GetFinalizers()) > 0 {
			_, _ = resource.Update(ctx, remaining, nil) // the apply reports an object that still exists
		}
	}
	found := p.apply(ctx, resource, it.Want)
	it.Source = Copy
	live := it.Live
	it.Live = nil
	p.record(it, found)
	it.Live = live
	if it.Action == Create {
		it.Action = Replace
		it.Reason = reason
		it.Fields = changedFields(live, it.Planned)
	}
}

// copyResource returns the handle of an object in the copy.
func (p *planner) copyResource(ctx context.Context, client *dynamic.Client, it *item) (*dynamic.Resource, error) {
	for found, err := range client.ForObjects(ctx, single(it.Want)) {
		if err != nil {
			return nil, err
		}
		return found.Resource, nil
	}
	return nil, fmt.Errorf("find the resource of %s: no result", it.Object) // ForObjects yields a result or an error
}

func single(obj *unstructured.Object) iter.Seq2[*unstructured.Object, error] {
	return func(yield func(*unstructured.Object, error) bool) { yield(obj, nil) }
}

// establishedTimeout limits the wait for a definition in the copy.
const establishedTimeout = 30 * time.Second

// awaitEstablished waits until the copy serves a defined kind. A definition that is not accepted has no kind: its objects have the
// error.
func (p *planner) awaitEstablished(ctx context.Context, resource *dynamic.Resource, it *item) {
	ctx, cancel := context.WithTimeout(ctx, establishedTimeout)
	defer cancel()
	_, err := resource.Wait(ctx, it.Object.Name, dynamic.Condition("Established"))
	if err != nil {
		it.Warnings = append(it.Warnings, "it is not established in the copy: "+cmp.Or(message(err), "timeout"))
	}
}
