// Package scripted is an API server for tests: it serves the discovery documents of listed resources, records all further requests,
// and responds to them as the test says. It runs in memory, also in a bubble of testing/synctest.
package scripted

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/testing/memconn"
	"github.com/anykind/anykind/transport"
)

// Server is a scripted API server. It is safe for concurrent use.
type Server struct {
	mu          sync.Mutex
	resources   string
	routes      map[string][]http.HandlerFunc
	requests    []Request
	discoveries int // requests for /apis
	count       int // all requests
}

// Request is a recorded request.
type Request struct {
	Method, URI, Accept, ContentType, Body string

	Time time.Time
}

// String returns the method and the URI.
func (r Request) String() string { return r.Method + " " + r.URI }

// New returns a server of resources, in the format of [Index].
func New(resources string) *Server {
	return &Server{resources: resources, routes: map[string][]http.HandlerFunc{}}
}

// Serve replaces the resources.
func (s *Server) Serve(resources string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resources = resources
}

// Handle responds to a route, which is a method and a path, such as "PATCH /api/v1/nodes/a". "WATCH /api/v1/nodes" is the route of
// watches, and "" of all requests without a route of their own. Responses are sent in turn, the last response repeatedly. A request
// without any route gets a 404 as for an unknown path. Routes of discovery requests replace their documents.
func (s *Server) Handle(route string, responses ...http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes[route] = responses
}

// Handler returns the next response to a route, to restore it later.
func (s *Server) Handler(route string) http.HandlerFunc {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.routes[route][0]
}

// Requests returns all requests but those for discovery documents.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Discoveries returns the number of requests for /apis.
func (s *Server) Discoveries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.discoveries
}

// Count returns the number of all requests.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body []byte
	if r.Body != nil { // a server's request has a body, a client's may lack one
		body, _ = io.ReadAll(r.Body)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.respond(r, string(body))(w, r)
}

// respond records a request and returns its response.
func (s *Server) respond(r *http.Request, body string) http.HandlerFunc {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	isDiscovery := r.URL.Path == "/api" || r.URL.Path == "/apis"
	switch {
	case !isDiscovery:
		s.requests = append(s.requests, Request{r.Method, r.RequestURI, r.Header.Get("Accept"), r.Header.Get("Content-Type"), body, time.Now()})
	case r.URL.Path == "/apis":
		s.discoveries++
	}
	method := r.Method
	if r.URL.Query().Get("watch") != "" {
		method = "WATCH"
	}
	route := method + " " + r.URL.Path
	if len(s.routes[route]) == 0 {
		if isDiscovery {
			return index(s.resources, r.URL.Path == "/api")
		}
		route = ""
	}
	responses := s.routes[route]
	switch len(responses) {
	case 0:
		return NotServed
	case 1:
	default:
		s.routes[route] = responses[1:]
	}
	return responses[0]
}

// index responds with a discovery document, whose Etag is a hash of it.
func index(resources string, core bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		document := Index(resources, core)
		hash := fnv.New64()
		_, _ = io.WriteString(hash, document)
		etag := fmt.Sprintf(`"%X"`, hash.Sum64())
		w.Header().Set("Content-Type", indexType)
		w.Header().Set("Etag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, document)
	}
}

// Connect serves a handler in memory until the test ends.
func Connect(t testing.TB, server http.Handler, opts *transport.Options) *transport.Conn {
	t.Helper()
	_, conn, stop := memconn.Serve(t, server, memconn.Fault{}, opts)
	t.Cleanup(stop)
	return conn
}

// RoundTripper serves a handler in memory until the test ends, for tests with an HTTP client of their own.
func RoundTripper(t testing.TB, server http.Handler) http.RoundTripper {
	t.Helper()
	_, roundTripper, stop := memconn.Start(t, server, memconn.Fault{})
	t.Cleanup(stop)
	return roundTripper
}

// fieldsOf returns the fields of a line, and "-" for each missing field up to count.
func fieldsOf(line string, count int) []string {
	fields := strings.Fields(line)
	for len(fields) < count {
		fields = append(fields, "-")
	}
	return fields
}
