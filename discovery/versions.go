package discovery

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A server without aggregated discovery passes questions about a group version on to whoever serves it, and one that
// hangs must not delay the others.
const (
	// parallelVersions bounds how many group versions are asked for at once.
	parallelVersions = 16
	// versionGrace is how long nothing must come before those who have not answered are given up for the moment. It is
	// longer where the first answer took long.
	versionGrace = time.Second
	// versionPatience is how long a group version may take where it is waited for.
	versionPatience = 10 * time.Second
	// versionRetry is for how long lookups do not wait again for one that did not answer.
	versionRetry = 30 * time.Second
)

// lateError says that a group version has not answered yet.
type lateError struct{ after time.Duration }

func (e *lateError) Error() string { return fmt.Sprintf("no answer within %s", e.after) }

// fetchVersions fills in the resources of every version of groups. A version that cannot be read keeps its error and
// spoils nothing else; one that answers much later than the others has a lateError, and one that is gone since the
// groups were listed no resources.
func (c *Client) fetchVersions(ctx context.Context, groups []Group) error {
	var wanted []schema.GroupVersion
	var versions []*Version
	for g := range groups {
		for v := range groups[g].Versions {
			gv, version := schema.GroupVersion{Group: groups[g].Name, Version: groups[g].Versions[v].Name}, &groups[g].Versions[v]
			version.Err = &lateError{c.patience}
			if !c.isHanging(gv) {
				version.Err = &lateError{c.grace}
				wanted, versions = append(wanted, gv), append(versions, version)
			}
		}
	}
	quick, cancel := context.WithCancel(ctx)
	defer cancel()
	begun, first := time.Now(), sync.OnceValue(time.Now)
	quiet := time.AfterFunc(c.patience+c.grace, cancel)
	defer quiet.Stop()
	c.fetchEach(quick, wanted, func(i int, resources []*Resource, err error) {
		quiet.Reset(max(c.grace, 2*first().Sub(begun)))
		if quick.Err() == nil || err == nil {
			versions[i].Resources, versions[i].Err = resources, err
		}
	})
	return retry.ContextError(ctx)
}

// fetchEach asks for group versions, some at once, and calls answered with each that it asked for, one after the other.
func (c *Client) fetchEach(ctx context.Context, wanted []schema.GroupVersion, answered func(i int, resources []*Resource, err error)) {
	next := make(chan int, len(wanted))
	for i := range wanted {
		next <- i
	}
	close(next)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range min(parallelVersions, len(wanted)) {
		all.Go(func() {
			for i := range next {
				if ctx.Err() != nil {
					return
				}
				resources, err := c.fetchVersion(ctx, wanted[i])
				mu.Lock()
				answered(i, resources, err)
				mu.Unlock()
			}
		})
	}
	all.Wait()
}

func versionPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// fetchVersion asks for a group version, for patience at most.
func (c *Client) fetchVersion(ctx context.Context, gv schema.GroupVersion) ([]*Resource, error) {
	patient, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	resources, err := c.readVersion(patient, gv)
	hangs := err != nil && patient.Err() != nil && ctx.Err() == nil
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case hangs:
		maps.DeleteFunc(c.unanswered, func(_ schema.GroupVersion, at time.Time) bool { return time.Since(at) > versionRetry })
		c.unanswered[gv] = time.Now()
		return nil, &lateError{c.patience}
	case ctx.Err() == nil:
		delete(c.unanswered, gv)
	}
	return resources, err
}

func (c *Client) readVersion(ctx context.Context, gv schema.GroupVersion) ([]*Resource, error) {
	path := versionPath(gv)
	answer, err := c.get(ctx, path, plainJSON())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := decodeKind(answer.body, "APIResourceList", &list); err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	resources := resourcesOf(gv, list.APIResources)
	if err := validateResources(resources); err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	return resources, nil
}

// isHanging reports whether a group version did not answer within patience a short time ago.
func (c *Client) isHanging(gv schema.GroupVersion) bool {
	return c.unansweredSince(gv, time.Now().Add(-versionRetry))
}

func (c *Client) unansweredSince(gv schema.GroupVersion, since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, unanswered := c.unanswered[gv]
	return unanswered && at.After(since)
}

// lateVersions lists the group versions that have not answered, of those that are wanted.
func lateVersions(snapshot *Snapshot, wanted func(schema.GroupVersion) bool) []schema.GroupVersion {
	var late []schema.GroupVersion
	for _, group := range snapshot.Groups {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Name}
			if _, isLate := version.Err.(*lateError); isLate && wanted(gv) { //nolint:errorlint // it is never wrapped
				late = append(late, gv)
			}
		}
	}
	return late
}

// fetchLate waits for group versions that have not answered yet, and returns the snapshot with what they answered.
func (c *Client) fetchLate(ctx context.Context, late []schema.GroupVersion) (*Snapshot, error) {
	asked := time.Now()
	c.fetchEach(ctx, late, func(i int, resources []*Resource, err error) {
		if ctx.Err() != nil {
			return
		}
		c.amend(late[i].Group, asked, func(latest *Group) *Group {
			for v := range latest.versions() {
				if latest.Versions[v].Name == late[i].Version {
					latest.Versions[v].Resources, latest.Versions[v].Err = resources, err
				}
			}
			return latest
		})
	})
	return c.Latest(), c.discoverError(ctx, retry.ContextError(ctx))
}

// versions returns the versions of a group that may be nil.
func (g *Group) versions() []Version {
	if g == nil {
		return nil
	}
	return g.Versions
}
