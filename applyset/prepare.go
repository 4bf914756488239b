package applyset

import (
	"context"
	"fmt"

	"github.com/anykind/anykind/unstructured/manifest"
)

// Options returns the options of the set, with the defaults.
func (s *Set) Options() Options { return s.opts }

// Prepare returns the objects as Apply sends them: with the label of the set, with their namespace, and a Secret's stringData as data.
// It validates them like Apply, and returns the positions of objects unchanged. It sends no request if discovery is up to date.
func (s *Set) Prepare(ctx context.Context, objects []*manifest.Object) ([]*manifest.Object, error) {
	d, err := s.desire(ctx, objects)
	if err != nil {
		return nil, fmt.Errorf("prepare the set of %s: %w", s.parent, err)
	}
	prepared := make([]*manifest.Object, len(objects))
	for i, obj := range objects {
		changed := *obj
		changed.Object = d.inOrder[i].want
		prepared[i] = &changed
	}
	return prepared, nil
}

// Prunable returns an event for each member that is not among objects: Pruned, or Kept with a reason. It checks the deletions by a dry
// run and writes nothing.
func (s *Set) Prunable(ctx context.Context, objects []*manifest.Object, opts *ApplyOptions) ([]Event, error) {
	r := &run{Set: s, options: valueOf(opts)}
	r.options.DryRun = true
	err := r.checkMembers(ctx, objects)
	if err != nil {
		err = fmt.Errorf("members that left the set of %s: %w", s.parent, err)
	}
	return r.events, err
}

func (r *run) checkMembers(ctx context.Context, objects []*manifest.Object) error {
	var err error
	if r.desired, err = r.desire(ctx, objects); err != nil {
		return err
	}
	if ctx, err = r.begin(ctx, r.readParent, r.readSet); err != nil {
		return err
	}
	r.prune(ctx)
	return r.end(ctx)
}
