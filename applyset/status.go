package applyset

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// ObjectStatus is the state of an object of the set in the cluster.
type ObjectStatus struct {
	Object Reference
	// Live is the object in the cluster, nil if it does not exist or is not a member.
	Live *unstructured.Object
	// Readiness is the status of Live.
	Readiness readiness.Result
	// Drift has the fields in which Live differs from the object to apply. It is nil without an object to apply.
	Drift []FieldDrift
	// Prunable is set for a member that is not among the objects to apply.
	Prunable bool
}

// Status compares objects with the members in the cluster, from one list for each kind. It returns the objects in the order of
// their references, and the further members with Prunable set. objects may be nil: every member is Prunable then, with its readiness. It
// writes nothing. A set without a parent has no members.
func (s *Set) Status(ctx context.Context, objects []*manifest.Object) ([]ObjectStatus, error) {
	all, err := s.status(ctx, objects)
	if err != nil {
		return nil, fmt.Errorf("status of the set of %s: %w", s.parent, err)
	}
	return all, nil
}

func (s *Set) status(ctx context.Context, objects []*manifest.Object) ([]ObjectStatus, error) {
	d, err := s.desire(ctx, objects)
	if err != nil {
		return nil, err
	}
	parent, err := s.getParent(ctx)
	if err != nil {
		return nil, err
	}
	left, err := s.readMembers(ctx, parent.recorded, d)
	if err != nil {
		return nil, err
	}
	all := make([]ObjectStatus, 0, len(d.members)+len(left))
	members := append(slices.Collect(maps.Values(d.members)), left...)
	slices.SortFunc(members, func(a, b *member) int { return a.compare(b.Reference) })
	for _, m := range members {
		status := ObjectStatus{Object: m.Reference, Live: m.live, Drift: m.drifts, Prunable: m.want == nil}
		if m.live != nil {
			status.Readiness = m.resource.Readiness(m.live, s.opts.Rules...)
		} else {
			status.Readiness = readiness.Result{Status: readiness.InProgress, Message: "it does not exist"}
		}
		all = append(all, status)
	}
	return all, nil
}
