package restmapper

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
)

// WaitForResources waits until the server serves all names, and returns their resources in the same order. Names are as for
// [Mapper.Resource], and may belong to CustomResourceDefinitions still to be created.
//
// ctx is the time-out: its error wraps the first missing name's [*NoMatchError] with suggestions or [*UnavailableError]. An
// [*AmbiguousError] ends the wait at once. [discovery.Client.WaitForSnapshot] documents the remaining errors and the refresh
// interval.
func (m *Mapper) WaitForResources(ctx context.Context, names ...string) ([]*discovery.Resource, error) {
	return waitFor(ctx, m, names, parseName)
}

// WaitForKinds is [Mapper.WaitForResources] for kinds. As for [Mapper.Kind], a kind without a version has the preferred version.
func (m *Mapper) WaitForKinds(ctx context.Context, kinds ...schema.GroupVersionKind) ([]*discovery.Resource, error) {
	return waitFor(ctx, m, kinds, kindQuery)
}

func waitFor[T any](ctx context.Context, m *Mapper, names []T, parse func(T) query) ([]*discovery.Resource, error) {
	found := make([]*discovery.Resource, len(names))
	var missing query // the last name without a match
	var lookupErr error
	_, err := m.discovery.WaitForSnapshot(ctx, func(snapshot *discovery.Snapshot) bool {
		x := m.index(snapshot)
		for i, name := range names {
			missing = parse(name)
			if found[i], lookupErr = x.resolve(missing); lookupErr != nil {
				break
			}
		}
		return !errors.Is(lookupErr, errNoMatch)
	})
	switch {
	case err == nil && lookupErr == nil:
		return found, nil
	case err == nil:
		return nil, lookupErr
	case lookupErr == nil: // there was no snapshot
		return nil, fmt.Errorf("wait for resources: %w", err)
	}
	return nil, fmt.Errorf("wait for %s: %w; %w", quoted(missing.String()), err, m.index(m.discovery.Latest()).noMatch(&missing))
}
