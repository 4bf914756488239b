package discovery

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/retry"
)

// SearchQuery describes the resource to find in [Client.Search].
type SearchQuery struct {
	// IsServed reports whether a snapshot contains the resource.
	IsServed func(*Snapshot) bool
	// MayBeInGroup reports whether the resource may be in the named group.
	MayBeInGroup func(name string) bool
}

// Search returns a snapshot with the resource, or the latest snapshot if the server does not serve the resource now. It
// refreshes if the latest snapshot lacks the resource, or after [Client.Invalidate]. If the refresh fails, it returns the latest
// snapshot with the resource. Search waits for late group versions only if the resource may be in them. It waits at most a second
// for an unserved CustomResourceDefinition in a group of the resource.
//
// Searches send bursts of at most 300 requests, refilled at 50 a second. Beyond this limit a server without aggregated
// discovery is not refreshed, because a refresh takes a request for each group version. The result is then some seconds old.
func (c *Client) Search(ctx context.Context, query *SearchQuery) (*Snapshot, error) {
	called := time.Now()
	known := c.latestOrCached()
	isKnown := known != nil && (c.conn == nil || query.IsServed(known))
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
	if err != nil || query.IsServed(latest) {
		return latest, err
	}
	latest, err = c.fetchLate(ctx, latest, func(gv schema.GroupVersion) bool {
		return query.MayBeInGroup(gv.Group) && !c.hasTimedOut(gv)
	})
	if err != nil || query.IsServed(latest) {
		return latest, err
	}
	return c.awaitDefinitions(ctx, called, query, latest)
}

func (c *Client) limitedRefresh(ctx context.Context, called time.Time) (*Snapshot, error) {
	return c.refreshRoots(ctx, called, func() (bool, error) { return c.allowRefresh(ctx) })
}

// allowRefresh takes the requests of a refresh from the rate limit. It returns false if they exceed the limit, and waits for two
// requests.
func (c *Client) allowRefresh(ctx context.Context) (bool, error) {
	latest := c.Latest()
	if latest == nil || latest.Aggregated {
		return true, retry.Sleep(ctx, c.limiter.Reserve(2))
	}
	requests := 2
	for _, group := range latest.Groups {
		requests += len(group.Versions)
	}
	return c.limiter.Allow(min(requests, limiterBurst)), nil // cap: a refresh may need more requests than the burst
}

// limiterBurst and limiterInterval bound the requests of searches to kubectl's discovery limit: 50 a second.
const (
	limiterBurst    = 300
	limiterInterval = 20 * time.Millisecond
)

// A CustomResourceDefinition is Established some milliseconds before discovery serves its resource. With several API servers
// the delay is longer. A search therefore repeats while an unserved definition may be its resource.
const (
	// newDefinitionWait bounds the wait for a definition after the client first saw it.
	newDefinitionWait = time.Second
	// oldDefinitionWait bounds each search's wait if a definition is older than newDefinitionWait, or if the user may not list
	// definitions.
	oldDefinitionWait = 100 * time.Millisecond
	// deniedRetry is the interval between attempts to list definitions after a denial.
	deniedRetry = 5 * time.Minute
)

var searchBackoff = retry.Backoff{Min: 10 * time.Millisecond, Max: 250 * time.Millisecond}

func (c *Client) awaitDefinitions(ctx context.Context, called time.Time, query *SearchQuery, latest *Snapshot) (*Snapshot, error) {
	groups, wait := c.definitions.unserved(ctx, c, called, query, latest)
	deadline := time.Now().Add(wait)
	for n := 1; wait > 0 && time.Now().Before(deadline); n++ {
		if err := retry.Sleep(ctx, min(searchBackoff.Delay(n), time.Until(deadline))); err != nil {
			return nil, c.discoveryError(ctx, err)
		}
		var err error
		if latest, err = c.refreshGroups(ctx, latest, groups); err != nil || query.IsServed(latest) {
			return latest, err
		}
	}
	return latest, nil
}

// refreshGroups requests the given groups, or all groups if this takes no more requests.
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

// definitionList caches the list of CustomResourceDefinitions. It determines the wait of searches.
type definitionList struct {
	lock        contextMutex // guards the fields below
	requestedAt time.Time
	resources   []schema.GroupResource
	deniedAt    time.Time
	// unservedSince maps each unserved definition to the time of its first sighting.
	unservedSince map[schema.GroupResource]time.Time
}

// unserved returns the query's possible groups with unserved definitions, and the time to wait for these definitions. The
// definitions are listed after called. If the list fails, the wait is 0, or oldDefinitionWait if the user may not list
// definitions.
func (d *definitionList) unserved(
	ctx context.Context, c *Client, called time.Time, query *SearchQuery, latest *Snapshot,
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
		d.requestedAt = requestedAt
		d.resources = listed
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
		if !query.MayBeInGroup(resource.Group) {
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

// listDefinitions returns the resources of the definitions. It requests a table: only names are needed, and a row takes about 100
// bytes.
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
