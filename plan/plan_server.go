package plan

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// response is the response to an apply in a dry run, or in the copy.
type response struct {
	planned   *unstructured.Object
	conflicts []dynamic.FieldConflict
	warnings  []string
	err       error
}

// planByServer reads the live object and applies the object in a dry run. All objects of earlier stages are planned.
func (p *planner) planByServer(ctx context.Context, it *item) {
	if it.Action == Rejected {
		return
	}
	p.checkDependencies(it)
	if it.resource == nil {
		p.notPlanned(it)
		return
	}
	found, err := p.readAndApply(ctx, it)
	if err != nil {
		it.reject(err)
		return
	}
	if it.unplannable != "" {
		it.Err = it.withoutValues(found.err)
		p.notPlanned(it)
		return
	}
	it.Source = Server
	p.record(it, found)
	if it.doubt != "" {
		it.NotValidated = append(it.NotValidated, it.doubt)
	}
}

func (p *planner) notPlanned(it *item) {
	it.Action = NotPlanned
	it.Reason = it.unplannable
}

// checkDependencies sets the reasons why the server cannot plan an object.
func (p *planner) checkDependencies(it *item) {
	for _, dependency := range it.dependencies {
		isNew := dependency.Live == nil
		switch kind := dependency.Object.Kind; {
		case kind == namespaceKind && isNew:
			it.unplannable = "its namespace is created by this plan"
		case kind == definitionKind && !isNew && dependency.Action != Unchanged:
			it.doubt = fmt.Sprintf("%s %q changes in this plan", kind.Kind, dependency.Object.Name)
		}
	}
	if p.limitsChange(it) {
		it.doubt = "a LimitRange of its namespace changes in this plan"
	}
}

// limitsChange reports whether a LimitRange of the plan has defaults for an object.
func (p *planner) limitsChange(it *item) bool {
	if it.Object.Kind != podKind && it.Object.Kind.String() != "PersistentVolumeClaim" {
		return false
	}
	for _, limits := range p.items {
		if limits.Object.Kind == limitRangeKind && limits.Object.Namespace == it.Object.Namespace && limits.Action != Unchanged {
			return true
		}
	}
	return false
}

// apply applies an object. A conflict has the result of a forced dry run.
func (p *planner) apply(ctx context.Context, resource *dynamic.Resource, want *unstructured.Object) (a response) {
	ctx, warnings := transport.CollectWarnings(ctx)
	defer func() { a.warnings = warnings.All() }()
	a.planned, a.err = resource.Apply(ctx, want, nil)
	var conflict *dynamic.ApplyConflictError
	if !errors.As(a.err, &conflict) {
		return a
	}
	a.conflicts = conflict.Conflicts
	force := &metav1.ApplyOptions{Force: true}
	if p.options.ForceConflicts {
		a.planned, a.err = resource.Apply(ctx, want, force)
		return a
	}
	a.planned, _ = resource.WithDefaults(&dynamic.Defaults{DryRun: true}).Apply(ctx, want, force) // nil after an error; a.err is the conflict
	return a
}

// record sets the outcome of an object.
func (p *planner) record(it *item, a response) {
	it.Planned = a.planned
	it.Conflicts = a.conflicts
	it.Fields = nil
	it.Reason = ""
	it.Err = nil
	it.Warnings, it.NotValidated = splitWarnings(a.warnings)
	for i, text := range it.Warnings {
		it.Warnings[i] = it.withoutValuesIn(text)
	}
	owned := p.ownedError(it, a.conflicts)
	switch {
	case owned != nil:
		it.Planned = nil
		it.Conflicts = nil
		it.reject(owned)
		return
	case a.err != nil && p.isReplace(it, a.err):
		it.Action = Replace
		it.Err = it.withoutValues(a.err)
		it.Reason = message(it.Err)
		it.unplannable = "it is deleted and created: " + it.Reason
		it.Planned = nil
		return
	case a.err != nil:
		it.reject(a.err)
	case it.Live == nil:
		it.Action = Create
	case reflect.DeepEqual(it.Live.Object, a.planned.Object):
		it.Action = Unchanged
		it.Planned = it.Live // they are equal
	default:
		it.Action = Configure
	}
	if it.Live == nil {
		return
	}
	if it.Planned != nil {
		it.Fields = changedFields(it.Live, it.Planned)
	}
	if it.Action == Configure && len(it.Fields) == 0 {
		it.Reason = "only the managers of its fields change"
	}
	switch {
	case it.Live.GetDeletionTimestamp() == nil:
	case p.options.Set != nil:
		it.Action = NotPlanned
		it.Reason = "it is being deleted: the set waits until it is gone, and creates it"
	default:
		it.Warnings = append(it.Warnings, "it is being deleted")
	}
}

// ownedError returns an [*applyset.OwnedError] for an object of a different set. The set does not take it over, also with
// Options.ForceConflicts.
func (p *planner) ownedError(it *item, conflicts []dynamic.FieldConflict) error {
	if p.options.Set == nil || it.Live == nil {
		return nil
	}
	id := it.Live.GetLabels()[applyset.PartOfLabel]
	for _, conflict := range conflicts {
		if conflict.Field == ".metadata.labels."+applyset.PartOfLabel && id != "" && id != it.Want.GetLabels()[applyset.PartOfLabel] {
			return &applyset.OwnedError{ID: id, Manager: conflict.Manager}
		}
	}
	return nil
}

// copyWarning begins the warnings of package apitest, the API server of a copy.
const copyWarning = "apitest: "

// splitWarnings separates the warnings about checks that the server has left out.
func splitWarnings(all []string) (warnings, notValidated []string) {
	for _, text := range all {
		missing, isOfCopy := strings.CutPrefix(text, copyWarning)
		if !isOfCopy {
			warnings = append(warnings, text)
			continue
		}
		missing = strings.TrimPrefix(missing, "not validated: ")
		notValidated = append(notValidated, strings.TrimSuffix(missing, " was not validated"))
	}
	return warnings, notValidated
}

// isReplace reports whether the server rejected the change of an immutable field. Namespaces and CustomResourceDefinitions are never
// replaced.
func (p *planner) isReplace(it *item, err error) bool {
	if it.Live == nil || !apierrors.IsInvalid(err) || it.Object.Kind == namespaceKind || it.Object.Kind == definitionKind {
		return false
	}
	text := strings.ToLower(message(err))
	for _, part := range []string{
		"immutable", "cannot change", "may not be changed", "may not change", "cannot be changed", "updates to", "cannot update", "can't be changed",
	} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
