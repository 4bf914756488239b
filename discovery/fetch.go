package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"

	"github.com/anykind/anykind/transport"
	jsoniter "github.com/json-iterator/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// acceptAggregated offers aggregated discovery, newest first, and takes what every server has. API servers compare
// the parameters in this order.
const acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList," +
	"application/json"

// root is what one of the two discovery roots, /api and /apis, answered last.
type root struct {
	groups []Group
	// aggregated is the version of the form in which the groups' versions came with their resources, "" for the
	// older form without them.
	aggregated string
	// etag lets the server say that nothing has changed; "" where it gives none.
	etag string
}

// fetch asks both roots at once, and each group version too unless both answered aggregated. It returns nil where
// both say that nothing has changed.
func (c *Client) fetch(ctx context.Context) (*Snapshot, error) {
	var core, named *root
	var coreErr, namedErr error
	var both sync.WaitGroup
	both.Go(func() { core, coreErr = fetchRoot(ctx, c.conn, "/api", c.roots["/api"], decodeCoreVersions) })
	both.Go(func() { named, namedErr = fetchRoot(ctx, c.conn, "/apis", c.roots["/apis"], decodeGroupList) })
	both.Wait()
	switch {
	case apierrors.IsNotFound(coreErr) && apierrors.IsNotFound(namedErr):
		return nil, fmt.Errorf("neither /api nor /apis is there: is this a Kubernetes API server? %w", namedErr)
	case apierrors.IsNotFound(coreErr): // some servers have no core group
		core, coreErr = &root{aggregated: "none"}, nil
	case apierrors.IsNotFound(namedErr):
		named, namedErr = &root{aggregated: "none"}, nil
	}
	if err := errors.Join(coreErr, namedErr); err != nil {
		return nil, err
	}
	if latest, _ := c.current(); latest != nil && core == c.roots["/api"] && named == c.roots["/apis"] {
		return nil, nil
	}
	snapshot := &Snapshot{Groups: copyGroups(core.groups, named.groups), Aggregated: core.aggregated != "" && named.aggregated != ""}
	clear(c.roots)
	if snapshot.Aggregated {
		c.roots["/api"], c.roots["/apis"] = core, named
	} else if err := c.fetchVersions(ctx, snapshot.Groups); err != nil {
		return nil, err
	}
	return snapshot, nil
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
func fetchRoot(ctx context.Context, conn *transport.Conn, path string, last *root, legacy func([]byte) ([]Group, error)) (*root, error) {
	header := http.Header{"Accept": {acceptAggregated}}
	if last != nil && last.etag != "" {
		header.Set("If-None-Match", last.etag)
	}
	answer, err := get(ctx, conn, path, header)
	if err != nil {
		return nil, err
	}
	if answer.unchanged && last != nil {
		return last, nil
	}
	fetched := &root{aggregated: aggregatedForm(answer.contentType), etag: answer.etag}
	decode := legacy
	if fetched.aggregated != "" {
		decode = decodeAggregated
	}
	if fetched.groups, err = decode(answer.body); err != nil {
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

// answer is a document of the server.
type answer struct {
	body              []byte
	contentType, etag string
	unchanged         bool
}

func get(ctx context.Context, conn *transport.Conn, path string, header http.Header) (*answer, error) {
	if conn == nil {
		return nil, errOffline
	}
	response, err := conn.Do(ctx, &transport.Request{Path: path, Header: header})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	read := &answer{
		contentType: response.Header.Get("Content-Type"), etag: response.Header.Get("ETag"),
		unchanged: response.StatusCode == http.StatusNotModified,
	}
	if read.body, err = io.ReadAll(response.Body); err != nil {
		return nil, fmt.Errorf("GET %s: read the answer: %w", path, err)
	}
	return read, nil
}

// plainJSON asks for a document as every server has it.
func plainJSON() http.Header { return http.Header{"Accept": {"application/json"}} }

var codec = jsoniter.Config{CaseSensitive: true}.Froze()

// decodeKind reads a document of the one kind that is expected.
func decodeKind(body []byte, kind string, into interface{ GetObjectKind() schema.ObjectKind }) error {
	if err := codec.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer is no %s: %w", kind, err)
	}
	if got := into.GetObjectKind().GroupVersionKind().Kind; got != kind {
		return fmt.Errorf("the answer is no %s: its kind is %q", kind, got)
	}
	return nil
}
