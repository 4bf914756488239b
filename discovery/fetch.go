package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/anykind/anykind/transport"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// acceptAggregated offers aggregated discovery, newest first, and takes what every server has. API servers compare
// the parameters in this order.
const acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList," +
	"application/json"

// index is what one of the two discovery roots answered.
type index struct {
	groups []Group
	// aggregated says that the groups' versions came with their resources.
	aggregated bool
}

// fetch asks both roots at once, and each group version too unless both answered aggregated.
func fetch(ctx context.Context, conn *transport.Conn) (*Snapshot, error) {
	snapshot := &Snapshot{Taken: time.Now()}
	var core, named index
	var coreErr, namedErr error
	var both sync.WaitGroup
	both.Go(func() { core, coreErr = fetchIndex(ctx, conn, "/api", decodeCoreVersions) })
	both.Go(func() { named, namedErr = fetchIndex(ctx, conn, "/apis", decodeGroupList) })
	both.Wait()
	switch {
	case apierrors.IsNotFound(coreErr) && apierrors.IsNotFound(namedErr):
		return nil, fmt.Errorf("neither /api nor /apis is there: is this a Kubernetes API server? %w", namedErr)
	case apierrors.IsNotFound(coreErr): // some servers have no core group
		core, coreErr = index{aggregated: true}, nil
	case apierrors.IsNotFound(namedErr):
		named, namedErr = index{aggregated: true}, nil
	}
	if err := errors.Join(coreErr, namedErr); err != nil {
		return nil, err
	}
	snapshot.Groups = append(core.groups, named.groups...)
	snapshot.Aggregated = core.aggregated && named.aggregated
	if !snapshot.Aggregated {
		if err := fetchVersions(ctx, conn, snapshot.Groups); err != nil {
			return nil, err
		}
	}
	return snapshot, nil
}

// fetchIndex asks one root. Only the answer's Content-Type tells an aggregated answer from a legacy one: read as the
// other, each is an empty list.
func fetchIndex(ctx context.Context, conn *transport.Conn, path string, legacy func([]byte) ([]Group, error)) (index, error) {
	body, contentType, err := get(ctx, conn, path, acceptAggregated)
	if err != nil {
		return index{}, err
	}
	decode, aggregated := legacy, isAggregated(contentType)
	if aggregated {
		decode = decodeAggregated
	}
	groups, err := decode(body)
	if err != nil {
		return index{}, fmt.Errorf("GET %s: %w", path, err)
	}
	return index{groups: groups, aggregated: aggregated}, nil
}

// isAggregated reads the Content-Type's parameters, whose order is the server's choice.
func isAggregated(contentType string) bool {
	mediaType, parameters, err := mime.ParseMediaType(contentType)
	return err == nil && mediaType == "application/json" &&
		parameters["g"] == "apidiscovery.k8s.io" && parameters["as"] == "APIGroupDiscoveryList" &&
		(parameters["v"] == "v2" || parameters["v"] == "v2beta1")
}

func get(ctx context.Context, conn *transport.Conn, path, accept string) (body []byte, contentType string, err error) {
	response, err := conn.Do(ctx, &transport.Request{Path: path, Header: http.Header{"Accept": {accept}}})
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	if err != nil {
		return nil, "", fmt.Errorf("GET %s: read the answer: %w", path, err)
	}
	return body, response.Header.Get("Content-Type"), nil
}

// decodeKind reads a document of the one kind that is expected.
func decodeKind(body []byte, kind string, into any) error {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return fmt.Errorf("the answer is no %s: %w", kind, err)
	}
	if head.Kind != kind {
		return fmt.Errorf("the answer is no %s: its kind is %q", kind, head.Kind)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer is no valid %s: %w", kind, err)
	}
	return nil
}
