package dynamic_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

const (
	coreIndex = `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{},"versions":[{"version":"v1","resources":[
		{"resource":"namespaces","responseKind":{"version":"v1","kind":"Namespace"},"scope":"Cluster","singularResource":"namespace","shortNames":["ns"],
		 "verbs":["create","delete","get","list","patch","update","watch"],
		 "subresources":[{"subresource":"finalize","responseKind":{"version":"v1","kind":"Namespace"},"verbs":["update"]}]},
		{"resource":"nodes","responseKind":{"version":"v1","kind":"Node"},"scope":"Cluster","singularResource":"node","verbs":["get","list","create"]},
		{"resource":"bindings","responseKind":{"version":"v1","kind":"Binding"},"scope":"Namespaced","singularResource":"binding","verbs":["create"]},
		{"resource":"serviceaccounts","responseKind":{"version":"v1","kind":"ServiceAccount"},"scope":"Namespaced","singularResource":"serviceaccount","shortNames":["sa"],
		 "verbs":["create","get"],
		 "subresources":[{"subresource":"token","responseKind":{"group":"authentication.k8s.io","version":"v1","kind":"TokenRequest"},"verbs":["create"]}]},
		{"resource":"pods","responseKind":{"version":"v1","kind":"Pod"},"scope":"Namespaced","singularResource":"pod","shortNames":["po"],
		 "verbs":["create","delete","deletecollection","get","list","patch","update","watch"],
		 "subresources":[{"subresource":"status","responseKind":{"version":"v1","kind":"Pod"},"verbs":["get","patch","update"]},
			{"subresource":"eviction","responseKind":{"group":"policy","version":"v1","kind":"Eviction"},"verbs":["create"]}]}]}]}]}`
	appsIndex = `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[
		{"resource":"deployments","responseKind":{"group":"apps","version":"v1","kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","shortNames":["deploy"],
		 "verbs":["create","delete","get","list","patch","update","watch"],
		 "subresources":[{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get","patch","update"]}]}]}]}]}`
)

// wire is a scripted server: it serves discovery, and responds to other requests, which it records, with replies in
// turn and then with the last one.
type wire struct {
	mu       sync.Mutex
	requests []string
	replies  []string
}

func (s *wire) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api", "/apis":
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		_, _ = io.WriteString(w, map[string]string{"/api": coreIndex, "/apis": appsIndex}[r.URL.Path])
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+r.Header.Get("Content-Type")+" "+string(body)))
	if len(s.replies) > 0 {
		_, _ = io.WriteString(w, s.replies[0])
		if len(s.replies) > 1 {
			s.replies = s.replies[1:]
		}
	}
}

func (s *wire) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// script returns a client of a scripted server; its default namespace is "home".
func script(t *testing.T, replies ...string) (*dynamic.Client, *wire) {
	t.Helper()
	server := &wire{replies: replies}
	listening := httptest.NewServer(server)
	client, err := dynamic.Connect(t.Context(), &transport.Config{Server: listening.URL, Options: transport.Options{Namespace: "home"}})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close(); listening.Close() })
	return client, server
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

// exchanges is a scripted server with whole responses: it serves discovery, and responds to every other request with the
// next of its answers. After the last it responds with 418, which ends everything.
type exchanges struct {
	mu       sync.Mutex
	requests []string
	accepts  []string
	written  string // the last request with a body
	answers  []answer
	began    time.Time // when the first of answers was asked for; zero while it was not
}

// answer is one response of a scripted server.
type answer struct {
	status int // default 200
	body   string
	stays  bool // the body ends when the client leaves
	// The following fields are for bubble only.
	mute  bool          // no response
	lasts time.Duration // repeat this answer for so long
	then  string        // is appended to the body repeatedly,
	after time.Duration // at this interval
}

func (s *exchanges) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api" || r.URL.Path == "/apis" {
		(&wire{}).ServeHTTP(w, r)
		return
	}
	next := s.next(r)
	if next.status != 0 {
		w.WriteHeader(next.status)
	}
	fmt.Fprint(w, next.body)
	if next.stays {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// next records a request and returns its answer.
func (s *exchanges) next(r *http.Request) answer {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, strings.Replace(r.Method+" "+r.URL.RequestURI(), "/api/v1/namespaces/home/pods", "…", 1))
	if len(body) > 0 {
		s.written = s.requests[len(s.requests)-1] + " " + r.Header.Get("Content-Type") + " " + string(body)
	}
	s.accepts = append(s.accepts, r.Header.Get("Accept"))
	for len(s.answers) > 0 {
		if s.began.IsZero() {
			s.began = time.Now()
		}
		next := s.answers[0]
		if time.Since(s.began) < next.lasts {
			return next
		}
		s.answers = s.answers[1:]
		s.began = time.Time{}
		if next.lasts == 0 {
			return next
		}
	}
	return answer{status: http.StatusTeapot, body: "no more answers"}
}

func (s *exchanges) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

func (s *exchanges) wrote() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written
}

func (s *exchanges) accepted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.accepts...)
}

// exchanging returns the pods of a scripted server, in the namespace "home".
func exchanging(t *testing.T, answers ...answer) (*dynamic.Resource, *exchanges) {
	t.Helper()
	server := &exchanges{answers: answers}
	listening := httptest.NewServer(server)
	client, err := dynamic.Connect(t.Context(), &transport.Config{Server: listening.URL, Options: transport.Options{Namespace: "home"}})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close(); listening.Close() })
	return resource(t, client, "pods"), server
}

func respond(body string) answer { return answer{body: body} }

func refuses(status int, reason string) answer {
	return answer{status: status, body: fmt.Sprintf(
		`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"as scripted","reason":%q,"code":%d}`, reason, status)}
}

// bubble is a scripted server without a network, for tests on synctest's clock.
type bubble struct{ *exchanges }

func (b bubble) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/api" || r.URL.Path == "/apis" {
		w := httptest.NewRecorder()
		(&wire{}).ServeHTTP(w, r)
		return w.Result(), nil
	}
	next := b.next(r)
	if next.mute {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	if next.status == 0 {
		next.status = http.StatusOK
	}
	body := io.Reader(strings.NewReader(next.body))
	if next.stays || next.then != "" {
		body = io.MultiReader(body, &endlessBody{ctx: r.Context(), then: next.then, after: next.after})
	}
	return &http.Response{StatusCode: next.status, Header: http.Header{}, Body: io.NopCloser(body), Request: r}, nil
}

// endlessBody is the end of a body that lasts until the client leaves.
type endlessBody struct {
	ctx   context.Context
	then  string
	after time.Duration
}

func (l *endlessBody) Read(p []byte) (int, error) {
	var tick <-chan time.Time
	if l.then != "" {
		tick = time.After(l.after)
	}
	select {
	case <-tick:
		return copy(p, l.then), nil
	case <-l.ctx.Done():
		return 0, l.ctx.Err()
	}
}

// inBubble returns the pods of a scripted server, in the namespace "home", to a test in a synctest bubble.
func inBubble(t *testing.T, answers ...answer) (*dynamic.Resource, *exchanges) {
	t.Helper()
	server := &exchanges{answers: answers}
	conn, err := transport.New("http://bubble", &http.Client{Transport: bubble{server}}, &transport.Options{
		Namespace: "home", MemoryLimits: transport.MemoryLimits{Object: 1 << 20},
	})
	require.NoError(t, err)
	client := dynamic.New(conn, nil)
	t.Cleanup(client.Close)
	return resource(t, client, "pods"), server
}
