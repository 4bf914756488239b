package dynamic_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

// resources are the resources of scripted servers, in the format of scripted.Index.
const resources = `
cluster /v1 namespaces namespace Namespace ns - create,delete,get,list,patch,update,watch
/v1 namespaces/finalize Namespace update
cluster /v1 nodes node Node - - get,list,create
/v1 bindings binding Binding - - create
/v1 serviceaccounts serviceaccount ServiceAccount sa - create,get
/v1 serviceaccounts/token authentication.k8s.io/v1/TokenRequest create
/v1 pods pod Pod po
/v1 pods/status Pod get,patch,update
/v1 pods/eviction policy/v1/Eviction create
apps/v1 deployments deployment Deployment deploy - create,delete,get,list,patch,update,watch
apps/v1 deployments/scale autoscaling/v1/Scale get,patch,update`

// wire is a scripted server that responds with replies in turn, and then with the last reply.
type wire struct{ *scripted.Server }

// seen returns the requests with their Content-Type and body.
func (s wire) seen() []string {
	var requests []string
	for _, r := range s.Requests() {
		requests = append(requests, strings.TrimSpace(r.String()+" "+r.ContentType+" "+r.Body))
	}
	return requests
}

// script returns a client of a scripted server; its default namespace is "home".
func script(t *testing.T, replies ...string) (*dynamic.Client, wire) {
	t.Helper()
	server := scripted.New(resources)
	responses := []http.HandlerFunc{}
	for _, reply := range replies {
		responses = append(responses, scripted.JSON(reply))
	}
	if len(replies) == 0 {
		responses = append(responses, scripted.JSON(""))
	}
	server.Handle("", responses...)
	return serveClient(t, server, nil), wire{server}
}

// serveClient returns a client of a server in memory; its default namespace is "home".
func serveClient(t *testing.T, server http.Handler, limits *transport.MemoryLimits) *dynamic.Client {
	t.Helper()
	opts := &transport.Options{Namespace: "home"}
	if limits != nil {
		opts.MemoryLimits = *limits
	}
	client := dynamic.New(scripted.Connect(t, server, opts), nil)
	t.Cleanup(client.Close)
	return client
}

func resource(t *testing.T, client *dynamic.Client, name string) *dynamic.Resource {
	t.Helper()
	found, err := client.Resource(t.Context(), name)
	require.NoError(t, err)
	return found
}

func object(kind, name string) *unstructured.Object {
	apiVersion := map[string]string{"Pod": "v1", "Node": "v1", "Deployment": "apps/v1", "Eviction": "policy/v1", "Scale": "autoscaling/v1"}[kind]
	return &unstructured.Object{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name},
	}}
}

func in(namespace string, obj *unstructured.Object) *unstructured.Object {
	obj.SetNamespace(namespace)
	return obj
}

const (
	podReply   = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","resourceVersion":"7"}}`
	tokenReply = `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":"s3cret","expirationTimestamp":"2026-01-02T03:04:05Z"}}`
	listReply  = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"web"}}]}`
)

// drain ranges to the end and returns the error that ended it.
func drain[T any](all func(func(T, error) bool)) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// exchanges is a scripted server with whole responses: it responds to every request with the next of its responses. After the last
// it responds with 418, which ends everything.
type exchanges struct {
	*scripted.Server
	mu        sync.Mutex
	responses []response
	began     time.Time // when the first of responses was asked for; zero while it was not
}

// response is one response of a scripted server.
type response struct {
	status int // default 200
	body   string
	stays  bool          // the body ends when the client leaves
	mute   bool          // no response
	lasts  time.Duration // repeat this response for so long
	then   string        // is appended to the body repeatedly,
	after  time.Duration // at this interval
}

func (a *response) write(w http.ResponseWriter, r *http.Request) {
	if a.mute {
		scripted.Hang(w, r)
		return
	}
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	_, _ = io.WriteString(w, a.body)
	for a.stays || a.then != "" {
		_ = http.NewResponseController(w).Flush()
		var tick <-chan time.Time
		if a.then != "" {
			tick = time.After(a.after)
		}
		select {
		case <-tick:
			_, _ = io.WriteString(w, a.then)
		case <-r.Context().Done():
			return
		}
	}
}

// next returns the response to the next request.
func (s *exchanges) next() response {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.responses) > 0 {
		if s.began.IsZero() {
			s.began = time.Now()
		}
		next := s.responses[0]
		if time.Since(s.began) < next.lasts {
			return next
		}
		s.responses = s.responses[1:]
		s.began = time.Time{}
		if next.lasts == 0 {
			return next
		}
	}
	return response{status: http.StatusTeapot, body: "no more responses"}
}

// seen returns the requests, with … for the path of the pods.
func (s *exchanges) seen() []string {
	var requests []string
	for _, r := range s.Requests() {
		requests = append(requests, shorten(r.String()))
	}
	return requests
}

func shorten(request string) string {
	return strings.Replace(request, "/api/v1/namespaces/home/pods", "…", 1)
}

// wrote returns the last request with a body.
func (s *exchanges) wrote() string {
	for _, r := range slices.Backward(s.Requests()) {
		if r.Body != "" {
			return shorten(r.String()) + " " + r.ContentType + " " + r.Body
		}
	}
	return ""
}

func (s *exchanges) accepted() []string {
	var accepts []string
	for _, r := range s.Requests() {
		accepts = append(accepts, r.Accept)
	}
	return accepts
}

// exchanging returns the pods of a scripted server, in the namespace "home". It may be called in a bubble of testing/synctest.
func exchanging(t *testing.T, responses ...response) (*dynamic.Resource, *exchanges) {
	t.Helper()
	server := newExchanges(responses...)
	return resource(t, serveClient(t, server, &transport.MemoryLimits{Object: 1 << 20}), "pods"), server
}

func newExchanges(responses ...response) *exchanges {
	server := &exchanges{Server: scripted.New(resources), responses: responses}
	server.Handle("", func(w http.ResponseWriter, r *http.Request) {
		next := server.next()
		next.write(w, r)
	})
	return server
}

// discover responds to a discovery request with the resources.
func discover(r *http.Request, resources string) (*http.Response, error) {
	w := httptest.NewRecorder()
	scripted.New(resources).ServeHTTP(w, r)
	return w.Result(), nil
}

func respond(body string) response { return response{body: body} }

func refuses(status int, reason string) response {
	return response{status: status, body: scripted.StatusJSON(status, reason)}
}
