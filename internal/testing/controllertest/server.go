// Package controllertest has fixtures for package controller and its nested packages: an in-memory server of leases and events,
// and clients of the cluster.
package controllertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

// Server is an in-memory server of leases and events. Without a network, tests can use synctest's clock and inject faults.
type Server struct {
	// Fault is called before each request of New's client. Its error breaks the connection.
	Fault func(*http.Request) error
	// Override handles requests before the server. If it returns false, the server handles the request.
	Override func(http.ResponseWriter, *http.Request) bool

	mu       sync.Mutex
	version  int
	objects  map[string]map[string]any
	requests []string
	events   []event
	changed  chan struct{} // closed and replaced after an event; nil without watches
}

// Resources are the resources of the server, in the format of scripted.Index.
const Resources = `
coordination.k8s.io/v1 leases lease Lease
events.k8s.io/v1 events event Event`

// Serve returns a client of a scripted server.
func Serve(t testing.TB, server http.Handler) *dynamic.Client {
	t.Helper()
	client := dynamic.New(scripted.Connect(t, server, nil), nil)
	t.Cleanup(client.Close)
	return client
}

// New returns a server and a client for it.
func New(t testing.TB) (*dynamic.Client, *Server) {
	t.Helper()
	server := &Server{objects: map[string]map[string]any{}}
	return server.Connect(t, func(r *http.Request) error {
		if server.Fault != nil {
			return server.Fault(r)
		}
		return nil
	}), server
}

// NewHanging returns a client and a hang function. After hang, requests block until their ctx ends.
func NewHanging(t testing.TB) (client *dynamic.Client, hang func()) {
	t.Helper()
	client, server := New(t)
	return client, func() {
		server.Fault = func(r *http.Request) error { <-r.Context().Done(); return context.Cause(r.Context()) }
	}
}

// Connect returns a client with its own connection. An error of fault breaks the connection for that request.
func (s *Server) Connect(t testing.TB, fault func(*http.Request) error) *dynamic.Client {
	t.Helper()
	conn, err := transport.New("http://memory", &http.Client{Transport: roundTripper{s, fault}}, nil)
	require.NoError(t, err)
	client := dynamic.New(conn, nil)
	t.Cleanup(client.Close)
	return client
}

// Leases returns a handle on the leases of the namespace shop.
func Leases(t testing.TB, client *dynamic.Client) *dynamic.Resource {
	t.Helper()
	return Resource(t, client, "leases.coordination.k8s.io").Namespace("shop")
}

type roundTripper struct {
	server *Server
	fault  func(*http.Request) error
}

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := r.fault(request); err != nil {
		return nil, err
	}
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	if response := r.server.watch(request); response != nil {
		return response, nil
	}
	w := httptest.NewRecorder()
	r.server.respond(w, request)
	response := w.Result()
	response.Request = request
	return response, nil
}

func (s *Server) respond(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api" || r.URL.Path == "/apis" {
		scripted.New(Resources).ServeHTTP(w, r)
		return
	}
	if s.Override != nil && s.Override(w, r) {
		return
	}
	var body map[string]any
	if r.Body != nil {
		decoder := json.NewDecoder(r.Body)
		decoder.UseNumber()
		_ = decoder.Decode(&body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	path := r.URL.Path
	if r.Method == http.MethodGet && isCollection(path) {
		_ = json.NewEncoder(w).Encode(s.list(r))
		return
	}
	if r.Method == http.MethodPost {
		path += "/" + body["metadata"].(map[string]any)["name"].(string)
	}
	existing := s.objects[path]
	switch {
	case r.Method == http.MethodPost && existing != nil:
		scripted.Status(http.StatusConflict, "AlreadyExists")(w, r)
		return
	case r.Method != http.MethodPost && existing == nil:
		RejectObject(w, http.StatusNotFound, "NotFound", path[strings.LastIndex(path, "/")+1:])
		return
	case r.Method == http.MethodPut && body["metadata"].(map[string]any)["resourceVersion"] != existing["metadata"].(map[string]any)["resourceVersion"]:
		scripted.Status(http.StatusConflict, "Conflict")(w, r)
		return
	case r.Method == http.MethodDelete && !isPrecondition(body, existing):
		scripted.Status(http.StatusConflict, "Conflict")(w, r)
		return
	case r.Method == http.MethodPatch:
		for field, value := range body { // tests send only fields with atomic values
			existing[field] = value
		}
		body = existing
	case r.Method == http.MethodGet:
		body = existing
	case r.Method == http.MethodDelete:
		s.delete(path)
		body = existing
	}
	if r.Method != http.MethodGet && r.Method != http.MethodDelete {
		s.store(path, body, existing)
	}
	_ = json.NewEncoder(w).Encode(body)
}

// store stores an object in place of existing, or as a new object if existing is nil.
func (s *Server) store(path string, body, existing map[string]any) {
	metadata := body["metadata"].(map[string]any)
	metadata["uid"] = path
	if existing != nil {
		metadata["uid"] = existing["metadata"].(map[string]any)["uid"]
	} else if s.deleted(path) {
		metadata["uid"] = path + strconv.Itoa(s.version)
	}
	s.objects[path] = body
	s.record(path, existing == nil)
}

// RejectObject responds with a Status about the named object.
func RejectObject(w http.ResponseWriter, code int, reason, name string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"as scripted","details":{"name":%q}}`, code, reason, name)
}

// Discard handles a request and drops the response.
func (s *Server) Discard(r *http.Request) { s.respond(httptest.NewRecorder(), r) }

// Clear deletes all objects.
func (s *Server) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path := range s.objects {
		s.delete(path)
	}
}

// Delete deletes the objects with part in their path, like a different client.
func (s *Server) Delete(part string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path := range s.objects {
		if strings.Contains(path, part) {
			s.delete(path)
		}
	}
}

// DeleteExactly deletes the objects with a path that ends in suffix.
func (s *Server) DeleteExactly(suffix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path := range s.objects {
		if strings.HasSuffix(path, suffix) {
			s.delete(path)
		}
	}
}

// Change changes the objects with part in their path, like a write by a different client.
func (s *Server) Change(part string, change func(object map[string]any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, object := range s.objects {
		if strings.Contains(path, part) {
			change(object)
			s.record(path, false)
		}
	}
}

// Hold creates a Lease that holder holds for 100,000 seconds.
func (s *Server) Hold(name, holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects["/apis/coordination.k8s.io/v1/namespaces/shop/leases/"+name] = map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": name, "resourceVersion": "1"},
		"spec": map[string]any{"holderIdentity": holder, "leaseDurationSeconds": 100_000},
	}
}

// Objects returns copies of the objects with part in their path.
func (s *Server) Objects(part string) (found []map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, object := range s.objects {
		if strings.Contains(path, part) {
			text, _ := json.Marshal(object)
			var copied map[string]any
			_ = json.Unmarshal(text, &copied)
			found = append(found, copied)
		}
	}
	return found
}

// Requests returns the requests since its last call, without discovery requests.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

// Logger returns a logger without timestamps, and a function that returns the logged lines.
func Logger() (*slog.Logger, func() []string) {
	var text bytes.Buffer // written under the handler's lock; tests read it only when nothing is logged
	handler := slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	return slog.New(handler), func() []string { return strings.Split(strings.TrimSpace(text.String()), "\n") }
}

// Setup prepares the tests of a package: it enables the mutation detector of caches and silences slog's default logger,
// since most tests inject failures.
func Setup() error {
	flags := log.Flags()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(os.Stderr) // restore the state before SetDefault
	log.SetFlags(flags)
	return os.Setenv("ANYKIND_CACHE_MUTATION_DETECTOR", "true")
}
