package wire_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	cgdynamic "k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/dev/parity/discoverytest"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

// wireRequest is the part of a request that a server evaluates.
type wireRequest struct {
	Method, Path        string
	Query               url.Values
	Accept, ContentType string
	Body                any // as JSON means it; nil where there is none
}

// wireServer serves a few resources, responds with an object in the requested representation, and records the requests.
type wireServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []wireRequest
	failed   error
}

// wireResources are the resources of the calls, with all their subresources.
var wireResources = []struct {
	gvr        schema.GroupVersionResource
	kind       string
	namespaced bool
	subs       map[string]metav1.GroupVersionKind
}{
	{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "Pod", true, map[string]metav1.GroupVersionKind{
		"status": {Version: "v1", Kind: "Pod"}, "eviction": {Group: "policy", Version: "v1", Kind: "Eviction"},
		"binding": {Version: "v1", Kind: "Binding"}, "ephemeralcontainers": {Version: "v1", Kind: "Pod"}, "resize": {Version: "v1", Kind: "Pod"},
	}},
	{schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "ServiceAccount", true, map[string]metav1.GroupVersionKind{
		"token": {Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"},
	}},
	{schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, "Node", false, map[string]metav1.GroupVersionKind{"status": {Version: "v1", Kind: "Node"}}},
	{schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "Namespace", false, map[string]metav1.GroupVersionKind{
		"status": {Version: "v1", Kind: "Namespace"}, "finalize": {Version: "v1", Kind: "Namespace"},
	}},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "Deployment", true, map[string]metav1.GroupVersionKind{
		"status": {Group: "apps", Version: "v1", Kind: "Deployment"}, "scale": {Group: "autoscaling", Version: "v1", Kind: "Scale"},
	}},
	{schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}, "CertificateSigningRequest", false, map[string]metav1.GroupVersionKind{
		"status": {Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"}, "approval": {Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"},
	}},
}

// gvrOf returns one of wireResources by its plural.
func gvrOf(t *testing.T, plural string) (gvr schema.GroupVersionResource, namespaced bool) {
	t.Helper()
	for _, resource := range wireResources {
		if resource.gvr.Resource == plural {
			return resource.gvr, resource.namespaced
		}
	}
	t.Fatalf("%s is none of wireResources", plural)
	return gvr, false
}

func wireDiscovery() map[string]any {
	served := &discoverytest.Catalog{}
	for _, resource := range wireResources {
		described := discoverytest.NewResource(resource.gvr.Resource, strings.ToLower(resource.kind), resource.kind, resource.namespaced, nil, nil)
		described.Subresources = nil
		for name, kind := range resource.subs {
			described.Subresources = append(described.Subresources, apidiscovery.APISubresourceDiscovery{
				Subresource: name, ResponseKind: &kind, Verbs: []string{"create", "get", "patch", "update"},
			})
		}
		served.Add(resource.gvr.Group, resource.gvr.Version, false, described)
	}
	core := apidiscovery.APIGroupDiscoveryList{}
	named := apidiscovery.APIGroupDiscoveryList{}
	for _, group := range served.Groups {
		if group.Name == "" {
			core.Items = append(core.Items, group)
		} else {
			named.Items = append(named.Items, group)
		}
	}
	for _, list := range []*apidiscovery.APIGroupDiscoveryList{&core, &named} {
		list.TypeMeta = metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}
	}
	return map[string]any{"/api": core, "/apis": named}
}

func newWireServer(t *testing.T) *wireServer {
	t.Helper()
	discovery := wireDiscovery()
	server := &wireServer{}
	server.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if list, ok := discovery[r.URL.Path]; ok {
			w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
			_ = json.NewEncoder(w).Encode(list)
			return
		}
		server.record(r)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, wireResponse(r))
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func (s *wireServer) record(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := wireRequest{
		Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.Query(),
		Accept: r.Header.Get("Accept"), ContentType: r.Header.Get("Content-Type"),
	}
	body := json.NewDecoder(r.Body)
	body.UseNumber() // as they are written: a large integer is not to pass through a float64
	if err := body.Decode(&seen.Body); err != nil && err != io.EOF {
		s.failed = err
	}
	s.requests = append(s.requests, seen)
}

// recorded returns the requests since the last call.
func (s *wireServer) recorded(t *testing.T) []wireRequest {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NoError(t, s.failed, "a request's body is no JSON")
	requests := s.requests
	s.requests = nil
	return requests
}

// wireResponse returns a response that all clients can decode.
func wireResponse(r *http.Request) string {
	const metadata = `"metadata":{"name":"web","namespace":"shop","resourceVersion":"7"}`
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	last := segments[len(segments)-1]
	collection := false
	for _, resource := range wireResources {
		collection = collection || resource.gvr.Resource == last && r.Method != http.MethodPost
	}
	accept := r.Header.Get("Accept")
	switch {
	case strings.Contains(accept, "as=Table"):
		return `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"columnDefinitions":[{"name":"Name","type":"string"}],"rows":[{"cells":["web"]}]}`
	case strings.Contains(accept, "as=PartialObjectMetadata") && collection:
		return `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[]}`
	case strings.Contains(accept, "as=PartialObjectMetadata"):
		return `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",` + metadata + `}`
	case last == "token":
		return `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":"t","expirationTimestamp":"2030-01-01T00:00:00Z"}}`
	case collection:
		return `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`
	default:
		return `{"kind":"Pod","apiVersion":"v1",` + metadata + `}`
	}
}

// clientGo has client-go's clients of a server.
type clientGo struct {
	dynamic  cgdynamic.Interface
	metadata metadata.Interface
	rest     rest.Interface
}

func wireClients(t *testing.T, server *wireServer, protobuf bool) (*dynamic.Client, clientGo) {
	t.Helper()
	ours, err := dynamic.Connect(t.Context(), &transport.Config{Server: server.URL, Options: transport.Options{Namespace: "shop", Protobuf: protobuf}})
	require.NoError(t, err)
	t.Cleanup(ours.Close)
	config := &rest.Config{Host: server.URL, QPS: -1}
	http, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(http.Transport) })
	var theirs clientGo
	theirs.dynamic, err = cgdynamic.NewForConfigAndClient(config, http)
	require.NoError(t, err)
	theirs.metadata, err = metadata.NewForConfigAndClient(config, http)
	require.NoError(t, err)
	config = cgdynamic.ConfigFor(config)
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	config.APIPath = "/api"
	theirs.rest, err = rest.RESTClientForConfigAndClient(config, http)
	require.NoError(t, err)
	return ours, theirs
}

// differences returns the differences between two requests, aspect by aspect: "query: ours … theirs …".
func differences(ours, theirs wireRequest) []string {
	var all []string
	note := func(aspect string, our, their any) {
		if !assert.ObjectsAreEqual(our, their) {
			all = append(all, aspect+": "+wireText(our)+" | "+wireText(their))
		}
	}
	note("method", ours.Method, theirs.Method)
	note("path", ours.Path, theirs.Path)
	note("query", ours.Query.Encode(), theirs.Query.Encode())
	note("accept", ours.Accept, theirs.Accept)
	note("content-type", ours.ContentType, theirs.ContentType)
	note("body", ours.Body, theirs.Body)
	return all
}

func wireText(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, _ := json.Marshal(value)
	return string(text)
}
