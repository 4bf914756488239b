package discovery

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/retry"
)

// acceptAggregated accepts aggregated discovery, newest version first, and falls back to plain JSON. API servers expect the
// parameters in this order.
const acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList," + plainJSON

// root is the last response of a discovery root, /api or /apis.
type root struct {
	groups   []Group
	rejected []error
	// aggregated is set if the response contains the versions' resources.
	aggregated bool
	// etag is sent as If-None-Match with the next request. It is "" if the server sent none.
	etag string
}

// fetch requests both roots in parallel, and then each group version unless both roots are aggregated. It returns nil if both
// roots are unchanged. The caller holds rootsLock.
func (c *Client) fetch(ctx context.Context) (*Snapshot, error) {
	if c.rootsStale.Swap(false) {
		clear(c.roots)
	}
	core, named, err := c.fetchRoots(ctx)
	if err != nil {
		return nil, err
	}
	if c.Latest() != nil && core == c.roots["/api"] && named == c.roots["/apis"] {
		return nil, nil
	}
	snapshot := &Snapshot{Aggregated: core.aggregated && named.aggregated}
	snapshot.Groups, snapshot.Rejected = rejectNames(copyGroups(core.groups, named.groups))
	snapshot.Rejected = slices.Concat(snapshot.Rejected, core.rejected, named.rejected)
	snapshot.Rejected = snapshot.Rejected[:min(len(snapshot.Rejected), maxRejected)]
	clear(c.roots)
	if snapshot.Aggregated {
		c.roots["/api"] = core
		c.roots["/apis"] = named
	} else if err := c.fetchVersions(ctx, snapshot); err != nil {
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
		return nil, nil, fmt.Errorf("neither /api nor /apis found (is this a Kubernetes API server?): %w", namedErr)
	case apierrors.IsNotFound(coreErr): // some servers have no core group
		core = &root{aggregated: true}
		coreErr = nil
	case apierrors.IsNotFound(namedErr):
		named = &root{aggregated: true}
		namedErr = nil
	}
	return core, named, errors.Join(coreErr, namedErr)
}

// fetchRoot requests a root. It returns last if the server responds 304 Not Modified. The Content-Type alone decides between
// the aggregated and the legacy decoder: each decodes the other format as an empty list.
func (c *Client) fetchRoot(ctx context.Context, path string, last *root, decodeLegacy func([]byte) ([]Group, error)) (*root, error) {
	header := accept(acceptAggregated)
	if last != nil && last.etag != "" {
		header.Set("If-None-Match", last.etag)
	}
	doc, err := c.get(ctx, path, header)
	if err != nil {
		return nil, err
	}
	if doc.NotModified && last != nil {
		return last, nil
	}
	fetched := &root{aggregated: isAggregated(doc.ContentType), etag: doc.ETag}
	if fetched.aggregated {
		fetched.groups, fetched.rejected, err = decodeAggregated(doc.Body, c.memory())
	} else if err = checkMemory(doc.Body, c.memory()); err == nil {
		fetched.groups, err = decodeLegacy(doc.Body)
	}
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", path, err)
	}
	return fetched, nil
}

// isAggregated reports whether contentType is aggregated discovery. The parameters may be in any order.
func isAggregated(contentType string) bool {
	mediaType, parameters, err := mime.ParseMediaType(contentType)
	return err == nil && mediaType == plainJSON &&
		parameters["g"] == "apidiscovery.k8s.io" && parameters["as"] == "APIGroupDiscoveryList" &&
		(parameters["v"] == "v2" || parameters["v"] == "v2beta1")
}

// refreshGroup requests a single group and replaces it in the latest snapshot. It does not wait for rootsLock.
func (c *Client) refreshGroup(ctx context.Context, name string) error {
	requestedAt := time.Now()
	group, err := c.fetchGroup(ctx, name)
	if err != nil {
		return fmt.Errorf("discover group %s of %s: %w", name, c.conn.Server(), retry.WithContextError(ctx, err))
	}
	// The next full refresh writes the disk cache: all cache files have the time of the same request.
	c.updateGroup(name, requestedAt, func(*Group) *Group { return group })
	return nil
}

// fetchGroup returns a group with its versions. It returns nil if the server does not serve the group.
func (c *Client) fetchGroup(ctx context.Context, name string) (*Group, error) {
	path := "/apis/" + name
	var served metav1.APIGroup
	if err := c.getKind(ctx, path, plainJSON, "APIGroup", &served); err != nil {
		return nil, utilerrors.FilterOut(err, apierrors.IsNotFound)
	}
	if served.Name != name {
		return nil, fmt.Errorf("GET %s: the response is group %s", path, quoted(served.Name))
	}
	group := groupOf(&served)
	group.Versions, _ = rejectVersions(group.Versions)
	if len(group.Versions) == 0 {
		return nil, nil
	}
	gvs := make([]schema.GroupVersion, 0, len(group.Versions))
	for _, version := range group.Versions {
		gvs = append(gvs, schema.GroupVersion{Group: name, Version: version.Name})
	}
	c.fetchEach(ctx, gvs, func(i int, resources []*Resource, err error) {
		group.Versions[i].Resources = resources
		group.Versions[i].Err = err
	})
	return &group, retry.ContextError(ctx)
}
