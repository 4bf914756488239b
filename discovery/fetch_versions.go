package discovery

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/retry"
)

// A server without aggregated discovery proxies requests for group versions to other API servers. If such a backend hangs, its
// versions are late after a grace period and do not delay the rest. Callers wait for a late version only if they need it.
const (
	// maxParallelVersions bounds the concurrent requests for group versions.
	maxParallelVersions = 16
	// defaultVersionGrace: outstanding versions are late after max(defaultVersionGrace, 2 × time of the first response) without
	// any response.
	defaultVersionGrace = time.Second
	// defaultVersionTimeout bounds each request for a group version.
	defaultVersionTimeout = 10 * time.Second
	// timedOutRetry is the time before lookups wait again for a version after its timeout.
	timedOutRetry = 30 * time.Second
)

// lateError is the error of a group version without a response so far.
type lateError struct{ after time.Duration }

func (e *lateError) Error() string { return fmt.Sprintf("no response within %s", e.after) }

// fetchVersions adds the resources to every version of a snapshot. An unreadable version gets an error, a slow version a
// lateError. A version removed meanwhile gets no resources.
func (c *Client) fetchVersions(ctx context.Context, snapshot *Snapshot) error {
	var gvs []schema.GroupVersion
	var versions []*Version
	for gv, version := range snapshot.Versions() {
		if c.hasTimedOut(gv) {
			version.Err = &lateError{c.versionTimeout}
			continue
		}
		version.Err = &lateError{c.versionGrace}
		gvs = append(gvs, gv)
		versions = append(versions, version)
	}
	fetchCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := time.Now()
	firstResponse := sync.OnceValue(time.Now)
	grace := time.AfterFunc(c.versionTimeout+c.versionGrace, cancel)
	defer grace.Stop()
	c.fetchEach(fetchCtx, gvs, func(i int, resources []*Resource, err error) {
		grace.Reset(max(c.versionGrace, 2*firstResponse().Sub(start)))
		if fetchCtx.Err() == nil || err == nil {
			versions[i].Resources = resources
			versions[i].Err = err
		}
	})
	return retry.ContextError(ctx)
}

// fetchEach requests group versions in parallel and calls onResponse for each response. Calls of onResponse are serialized.
func (c *Client) fetchEach(ctx context.Context, gvs []schema.GroupVersion, onResponse func(i int, resources []*Resource, err error)) {
	queue := make(chan int, len(gvs))
	for i := range gvs {
		queue <- i
	}
	close(queue)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range min(maxParallelVersions, len(gvs)) {
		workers.Go(func() {
			for i := range queue {
				if ctx.Err() != nil {
					return
				}
				resources, err := c.fetchVersion(ctx, gvs[i])
				mu.Lock()
				onResponse(i, resources, err)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
}

func (c *Client) fetchVersion(ctx context.Context, gv schema.GroupVersion) ([]*Resource, error) {
	bounded, cancel := context.WithTimeout(ctx, c.versionTimeout)
	defer cancel()
	resources, err := c.getVersion(bounded, gv)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ctx.Err() != nil:
	case err != nil && bounded.Err() != nil:
		maps.DeleteFunc(c.timedOut, func(_ schema.GroupVersion, at time.Time) bool { return time.Since(at) > timedOutRetry })
		c.timedOut[gv] = time.Now()
		return nil, &lateError{c.versionTimeout}
	default:
		delete(c.timedOut, gv)
	}
	return resources, err
}

func (c *Client) getVersion(ctx context.Context, gv schema.GroupVersion) ([]*Resource, error) {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	var resources []*Resource
	err := c.getDecoded(ctx, path, plainJSON, func(body []byte) (err error) {
		resources, _, err = decodeResourceList(body, gv, newInterner())
		return err
	})
	if err != nil {
		return nil, utilerrors.FilterOut(err, apierrors.IsNotFound)
	}
	if err := validateResources(resources); err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	return resources, nil
}

// hasTimedOut reports whether a group version has timed out within timedOutRetry.
func (c *Client) hasTimedOut(gv schema.GroupVersion) bool {
	return c.timedOutSince(gv, time.Now().Add(-timedOutRetry))
}

func (c *Client) timedOutSince(gv schema.GroupVersion, since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timedOut[gv].After(since)
}

// fetchLate waits for the late group versions selected by isWanted. It returns a snapshot with their responses.
func (c *Client) fetchLate(ctx context.Context, snapshot *Snapshot, isWanted func(schema.GroupVersion) bool) (*Snapshot, error) {
	var late []schema.GroupVersion
	for gv, version := range snapshot.Versions() {
		if _, isLate := version.Err.(*lateError); isLate && isWanted(gv) { //nolint:errorlint // it is never wrapped
			late = append(late, gv)
		}
	}
	if len(late) == 0 {
		return snapshot, nil
	}
	requestedAt := time.Now()
	c.fetchEach(ctx, late, func(i int, resources []*Resource, err error) {
		if ctx.Err() != nil {
			return
		}
		c.updateGroup(late[i].Group, requestedAt, func(group *Group) *Group {
			if group == nil {
				return nil
			}
			for v := range group.Versions {
				if version := &group.Versions[v]; version.Name == late[i].Version {
					version.Resources = resources
					version.Err = err
				}
			}
			return group
		})
	})
	return c.Latest(), c.discoveryError(ctx, retry.ContextError(ctx))
}
