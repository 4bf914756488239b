package discovery

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/retry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Target is a resource for which [Client.Search] looks.
type Target struct {
	// IsServed reports whether a snapshot has the target.
	IsServed func(*Snapshot) bool
	// MayBeInGroup reports whether the target may be in a group.
	MayBeInGroup func(name string) bool
}

// Search returns a snapshot that has the target, or the latest one if the server does not serve it now. If the latest
// snapshot lacks the target, or after [Client.Invalidate], it refreshes. If that fails, a snapshot with the target is good enough.
// It waits for group versions that answer late only if the target may be in them,
// and for at most a second for a CustomResourceDefinition that may be the target's and is not served yet.
//
// Searches send at most 300 requests at once and 50 a second. Beyond that they do not refresh from a server without
// aggregated discovery, where a refresh takes a request for each group version; the result is then some seconds old.
func (c *Client) Search(ctx context.Context, target *Target) (*Snapshot, error) {
	called := time.Now()
	known := c.latestOrCached()
	isKnown := known != nil && (c.conn == nil || target.IsServed(known))
	switch {
	case isKnown && (c.conn == nil || c.Fresh()):
		return known, nil
	case c.conn == nil:
		return nil, errOffline
	}
	latest, err := c.limitedRefresh(ctx, called)
	if err != nil && isKnown && ctx.Err() == nil {
		return known, nil
	}
	if err != nil || target.IsServed(latest) {
		return latest, err
	}
	latest, err = c.fetchLate(ctx, latest, func(gv schema.GroupVersion) bool {
		return target.MayBeInGroup(gv.Group) && !c.hasTimedOut(gv)
	})
	if err != nil || target.IsServed(latest) {
		return latest, err
	}
	return c.awaitDefinitions(ctx, called, target, latest)
}

func (c *Client) limitedRefresh(ctx context.Context, called time.Time) (*Snapshot, error) {
	return c.refreshRoots(ctx, called, func() (bool, error) {
		latest := c.Latest()
		if latest == nil || latest.Aggregated {
			return true, retry.Sleep(ctx, c.limiter.Reserve(2))
		}
		requests := 2
		for _, group := range latest.Groups {
			requests += len(group.Versions)
		}
		return c.limiter.Allow(min(requests, limiterBurst)), nil // one refresh may exceed the burst
	})
}

// limiterBurst and limiterInterval bound the requests of searches as kubectl bounds those of discovery: 50 a second.
const (
	limiterBurst    = 300
	limiterInterval = 20 * time.Millisecond
)

// A CustomResourceDefinition is Established some milliseconds before discovery has its resource, and longer before each of
// several servers has. A search therefore repeats while definitions that may be its target's are not served.
const (
	// newDefinitionWait is how long searches wait for a definition after it was first seen.
	newDefinitionWait = time.Second
	// oldDefinitionWait is how long each search waits if the definition is still not served then, or if the user may not
	// list definitions.
	oldDefinitionWait = 100 * time.Millisecond
	// deniedRetry is the interval at which a user who may not list definitions tries again.
	deniedRetry = 5 * time.Minute
)

var searchBackoff = retry.Backoff{Min: 10 * time.Millisecond, Max: 250 * time.Millisecond}

func (c *Client) awaitDefinitions(ctx context.Context, called time.Time, target *Target, latest *Snapshot) (*Snapshot, error) {
	groups, wait := c.definitions.unserved(ctx, c, called, target, latest)
	deadline := time.Now().Add(wait)
	for n := 1; wait > 0 && time.Now().Before(deadline); n++ {
		if err := retry.Sleep(ctx, min(searchBackoff.Delay(n), time.Until(deadline))); err != nil {
			return nil, c.discoveryError(ctx, err)
		}
		var err error
		if latest, err = c.refreshGroups(ctx, latest, groups); err != nil || target.IsServed(latest) {
			return latest, err
		}
	}
	return latest, nil
}

// refreshGroups requests groups, or all of them if that takes no more requests.
func (c *Client) refreshGroups(ctx context.Context, latest *Snapshot, groups []string) (*Snapshot, error) {
	if latest.Aggregated || len(groups) == 0 {
		return c.limitedRefresh(ctx, time.Now())
	}
	for _, group := range groups[:min(len(groups), maxSingleGroups)] {
		if err := retry.Sleep(ctx, c.limiter.Reserve(2)); err != nil {
			return nil, c.discoveryError(ctx, err)
		}
		if err := c.refreshGroup(ctx, group); err != nil {
			return nil, err
		}
	}
	return c.Latest(), nil
}

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// definitionList is the last list of CustomResourceDefinitions, with which searches decide for how long to wait.
type definitionList struct {
	lock        contextMutex // guards the fields below
	requestedAt time.Time
	resources   []schema.GroupResource
	deniedAt    time.Time
	// unservedSince is the time at which searches first saw a definition that is not served.
	unservedSince map[schema.GroupResource]time.Time
}

// unserved returns the groups that may have the target and have definitions which are not in latest, and how long to wait for
// those. The definitions are listed after called. If that fails there is nothing to wait for, unless the user may not list
// them.
func (d *definitionList) unserved(
	ctx context.Context, c *Client, called time.Time, target *Target, latest *Snapshot,
) (groups []string, wait time.Duration) {
	served := map[schema.GroupResource]bool{}
	for resource := range latest.Resources() {
		served[resource.GVR.GroupResource()] = true
	}
	if !served[schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}] || d.lock.lock(ctx) != nil {
		return nil, 0
	}
	defer d.lock.unlock()
	if time.Since(d.deniedAt) < deniedRetry {
		return nil, oldDefinitionWait
	}
	if !d.requestedAt.After(called) {
		requestedAt := time.Now()
		listed, err := c.listDefinitions(ctx)
		switch {
		case retry.IsDenied(err):
			d.deniedAt = requestedAt
			return nil, oldDefinitionWait
		case err != nil:
			return nil, 0
		}
		d.requestedAt, d.resources = requestedAt, listed
	}
	unservedSince := map[schema.GroupResource]time.Time{}
	for _, resource := range d.resources {
		if served[resource] {
			continue
		}
		since, known := d.unservedSince[resource]
		if !known {
			since = time.Now()
		}
		unservedSince[resource] = since
		if !target.MayBeInGroup(resource.Group) {
			continue
		}
		wait = max(wait, oldDefinitionWait)
		if time.Since(since) < newDefinitionWait {
			wait = newDefinitionWait
		}
		if !slices.Contains(groups, resource.Group) {
			groups = append(groups, resource.Group)
		}
	}
	d.unservedSince = unservedSince
	return groups, wait
}

// listDefinitions returns the resources that definitions define. Their names, which are all that is needed, take about 100
// bytes each in a table.
func (c *Client) listDefinitions(ctx context.Context) ([]schema.GroupResource, error) {
	if err := retry.Sleep(ctx, c.limiter.Reserve(1)); err != nil {
		return nil, err
	}
	var table struct {
		metav1.TypeMeta `json:",inline"`

		Rows []struct {
			Cells []any `json:"cells"`
		} `json:"rows"`
		Columns []metav1.TableColumnDefinition `json:"columnDefinitions"`
	}
	if err := c.getKind(ctx, definitionsPath+"?includeObject=None", "application/json;as=Table;g=meta.k8s.io;v=v1", "Table", &table); err != nil {
		return nil, err
	}
	column := slices.IndexFunc(table.Columns, func(c metav1.TableColumnDefinition) bool { return strings.EqualFold(c.Name, "name") })
	var resources []schema.GroupResource
	for _, row := range table.Rows {
		if column < 0 || column >= len(row.Cells) {
			continue
		}
		if name, ok := row.Cells[column].(string); ok {
			if resource := schema.ParseGroupResource(name); validateGroup(resource.Group) == nil && resource.Group != "" {
				resources = append(resources, resource)
			}
		}
	}
	return resources, nil
}
