package applyset

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// ConflictPolicy decides about applied fields with a different owner and a different value.
type ConflictPolicy int

const (
	// ConflictFail reports an error for the object, a *dynamic.ApplyConflictError.
	ConflictFail ConflictPolicy = iota
	// ConflictForce takes the fields over.
	ConflictForce
	// ConflictSkip leaves the fields to their owners. Event.Reason lists them.
	ConflictSkip
)

// maxApplies limits the attempts to apply an object that changes after BeforeApply.
const maxApplies = 5

// checkAndSend calls BeforeApply and applies an object.
func (r *run) checkAndSend(ctx context.Context, m *member) (live *unstructured.Object, leftOut string, err error) {
	if r.options.BeforeApply == nil || r.options.DryRun {
		return r.send(ctx, m, "")
	}
	for attempt := 1; ; attempt++ {
		resourceVersion, err := r.options.BeforeApply(ctx, m.Reference)
		if err != nil {
			return nil, "", err
		}
		live, leftOut, err = r.send(ctx, m, resourceVersion)
		var fields *dynamic.ApplyConflictError
		if resourceVersion == "" || !apierrors.IsConflict(err) || errors.As(err, &fields) || attempt == maxApplies {
			return live, leftOut, err
		}
	}
}

// send applies an object by the policy for conflicts. resourceVersion is a precondition unless it is empty.
func (r *run) send(ctx context.Context, m *member, resourceVersion string) (live *unstructured.Object, leftOut string, err error) {
	resource, err := r.writer(ctx, m.resource)
	if err != nil {
		return nil, "", err
	}
	want := m.want
	if resourceVersion != "" {
		want = want.DeepCopy()
		want.SetResourceVersion(resourceVersion)
	}
	live, err = resource.Apply(ctx, want, nil)
	var conflict *dynamic.ApplyConflictError
	if !errors.As(err, &conflict) {
		return live, "", err
	}
	if owned := r.ownedError(ctx, m, conflict); owned != nil {
		return nil, "", owned
	}
	switch r.options.Conflicts {
	case ConflictForce:
		live, err = resource.Apply(ctx, want, &metav1.ApplyOptions{Force: true})
		return live, "", err
	case ConflictSkip:
		reduced, fields, reduceErr := leaveOut(want, conflict)
		if reduceErr != nil {
			return nil, "", errors.Join(err, reduceErr)
		}
		live, err = resource.Apply(ctx, reduced, nil)
		return live, "left out " + strings.Join(fields, ", "), err
	case ConflictFail:
	}
	return nil, "", err
}

// partOfField is the label of members in conflicts.
const partOfField = ".metadata.labels." + PartOfLabel

// ownedError returns an [*OwnedError] if the object has the label of a different set.
func (r *run) ownedError(ctx context.Context, m *member, conflict *dynamic.ApplyConflictError) error {
	for _, field := range conflict.Conflicts {
		if field.Field != partOfField {
			continue
		}
		current, err := m.resource.Metadata().Get(ctx, m.Name, nil)
		if err != nil {
			return err
		}
		if id := current.GetLabels()[PartOfLabel]; id != "" && id != r.id {
			return &OwnedError{ID: id, Manager: field.Manager}
		}
	}
	return nil
}

// leaveOut returns a copy of obj without the conflicting fields, and their names.
func leaveOut(obj *unstructured.Object, conflict *dynamic.ApplyConflictError) (*unstructured.Object, []string, error) {
	reduced := obj.DeepCopy()
	var fields []string
	for _, field := range conflict.Conflicts {
		if !deleteField(reduced.Object, field.Field) {
			return nil, nil, fmt.Errorf("%s cannot be left out", field.Field)
		}
		fields = append(fields, field.String())
	}
	return reduced, fields, nil
}
