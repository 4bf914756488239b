package discovery

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/testing/scripted"
)

// Resources in the format of scripted.Index.
const (
	pods         = "/v1 pods pod Pod - - get\n"
	deployments  = "apps/v1 deployments deployment Deployment - - get\n"
	daemonSets   = "apps/v1 daemonsets daemonset DaemonSet - - get\n"
	statefulSets = "apps/v1 statefulsets statefulset StatefulSet - - get\n"
	jobs         = "batch/v1 jobs job Job - - get\n"
	carts        = "shop/v1 carts - Cart - - get\n"
	things       = "late/v1 things thing Thing - - get\n"
)

const emptyMetadata = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[]}`

// testServer is a scripted server of pods and deployments. The lists of watchedSources are empty, and their watches stay open.
type testServer struct {
	*scripted.Server
	began time.Time
}

func newServer() *testServer {
	s := &testServer{scripted.New(pods + deployments), time.Now()}
	s.handleAll(nil)
	return s
}

// handleAll responds to all requests, or for nil as a new server does.
func (s *testServer) handleAll(response http.HandlerFunc) {
	responses := []http.HandlerFunc{response}
	list := response
	watch := response
	if response == nil {
		responses = nil
		list = scripted.JSON(emptyMetadata)
		watch = scripted.Watch()
	}
	for _, route := range []string{"GET /api", "GET /apis", ""} {
		s.Handle(route, responses...)
	}
	for _, path := range watchedSources {
		s.Handle("GET "+path, list)
		s.Handle("WATCH "+path, watch)
	}
}

// serve serves pods and resources, also after a different response to GET /apis.
func (s *testServer) serve(resources string) {
	s.Serve(pods + resources)
	s.Handle("GET /apis")
}

// serveJSON responds to each path with a document.
func (s *testServer) serveJSON(documents map[string]string) {
	for path, document := range documents {
		s.Handle("GET "+path, scripted.JSON(document))
	}
}

// asked returns the number of requests for a path or, for "watch", of watches of definitions.
func (s *testServer) asked(path string) int {
	count := 0
	for _, r := range s.Requests() {
		requested, query, _ := strings.Cut(r.URI, "?")
		if strings.Contains(query, "watch=") && requested == definitionsPath {
			requested = "watch"
		}
		if requested == path {
			count++
		}
	}
	return count
}

// serving returns a server of pods and resources, and its client.
func serving(t *testing.T, resources string) (*testServer, *Client) {
	t.Helper()
	server := newServer()
	server.serve(resources)
	return server, New(scripted.Connect(t, server, nil), nil)
}

func refresh(t *testing.T, client *Client) *Snapshot {
	t.Helper()
	snapshot, err := client.Refresh(t.Context())
	require.NoError(t, err)
	return snapshot
}

// versionOf returns version v1 of a group, nil if the snapshot lacks it.
func versionOf(s *Snapshot, group string) *Version {
	return maps.Collect(s.Versions())[schema.GroupVersion{Group: group, Version: "v1"}]
}
