package discovery

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// acceptAggregated offers aggregated discovery, newest first, and takes what every server has. API servers compare
// the parameters in this order.
const acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList," +
	"application/json"

// root is what one of the two discovery roots, /api and /apis, answered last.
type root struct {
	groups   []Group
	rejected []error
	// aggregated is the version of the form in which the groups' versions came with their resources, "" for the
	// older form without them.
	aggregated string
	// etag lets the server say that nothing has changed; "" where it gives none.
	etag string
}

// fetch asks both roots at once, and each group version too unless both answered aggregated. It returns nil where
// both say that nothing has changed.
func (c *Client) fetch(ctx context.Context) (*Snapshot, error) {
	c.mu.Lock()
	if c.rootsStale {
		clear(c.roots)
		c.rootsStale = false
	}
	c.mu.Unlock()
	core, named, err := c.fetchRoots(ctx)
	if err != nil {
		return nil, err
	}
	if c.Latest() != nil && core == c.roots["/api"] && named == c.roots["/apis"] {
		return nil, nil
	}
	snapshot := &Snapshot{Aggregated: core.aggregated != "" && named.aggregated != ""}
	snapshot.Groups, snapshot.Rejected = rejectNames(copyGroups(core.groups, named.groups))
	snapshot.Rejected = append(snapshot.Rejected, slices.Concat(core.rejected, named.rejected)...)
	snapshot.Rejected = snapshot.Rejected[:min(len(snapshot.Rejected), maxRejected)]
	clear(c.roots)
	if snapshot.Aggregated {
		c.roots["/api"], c.roots["/apis"] = core, named
	} else if err := c.fetchVersions(ctx, snapshot.Groups); err != nil {
		return nil, err
	}
	return snapshot, nil
}

func (c *Client) fetchRoots(ctx context.Context) (core, named *root, err error) {
	var coreErr, namedErr error
	var both sync.WaitGroup
	both.Go(func() { core, coreErr = c.fetchRoot(ctx, "/api", c.roots["/api"], decodeCoreVersions) })
	both.Go(func() { named, namedErr = c.fetchRoot(ctx, "/apis", c.roots["/apis"], decodeGroupList) })
	both.Wait()
	switch {
	case apierrors.IsNotFound(coreErr) && apierrors.IsNotFound(namedErr):
		return nil, nil, fmt.Errorf("neither /api nor /apis is there: is this a Kubernetes API server? %w", namedErr)
	case apierrors.IsNotFound(coreErr): // some servers have no core group
		core, coreErr = &root{aggregated: "none"}, nil
	case apierrors.IsNotFound(namedErr):
		named, namedErr = &root{aggregated: "none"}, nil
	}
	return core, named, errors.Join(coreErr, namedErr)
}

// copyGroups joins the groups of both roots, so that completing a snapshot does not change what a root answered.
func copyGroups(both ...[]Group) []Group {
	var groups []Group
	for _, some := range both {
		for _, group := range some {
			group.Versions = append([]Version(nil), group.Versions...)
			groups = append(groups, group)
		}
	}
	return groups
}

// fetchRoot asks one root, and returns last where the server says that nothing has changed since. Only the answer's
// Content-Type tells an aggregated answer from a legacy one: read as the other, each is an empty list.
func (c *Client) fetchRoot(ctx context.Context, path string, last *root, legacy func([]byte) ([]Group, error)) (*root, error) {
	header := http.Header{"Accept": {acceptAggregated}}
	if last != nil && last.etag != "" {
		header.Set("If-None-Match", last.etag)
	}
	answer, err := c.get(ctx, path, header)
	if err != nil {
		return nil, err
	}
	if answer.unchanged && last != nil {
		return last, nil
	}
	fetched := &root{aggregated: aggregatedForm(answer.contentType), etag: answer.etag}
	if fetched.aggregated != "" {
		fetched.groups, fetched.rejected, err = decodeAggregated(answer.body)
	} else {
		fetched.groups, err = legacy(answer.body)
	}
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	return fetched, nil
}

// aggregatedForm is v2 or v2beta1, "" for anything else. The order of the Content-Type's parameters is the server's
// choice.
func aggregatedForm(contentType string) string {
	mediaType, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || mediaType != "application/json" ||
		parameters["g"] != "apidiscovery.k8s.io" || parameters["as"] != "APIGroupDiscoveryList" {
		return ""
	}
	if form := parameters["v"]; form == "v2" || form == "v2beta1" {
		return form
	}
	return ""
}
