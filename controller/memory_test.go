package controller_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/require"
)

// memory is a server of leases and events without a network, so that tests can run on synctest's clock, and that fails
// as tests tell it to.
type memory struct {
	fault func(*http.Request) error // asked before each request of inMemory's client; its error breaks the connection

	override func(http.ResponseWriter, *http.Request) bool // answers in the server's place, where it says so

	mu       sync.Mutex
	version  int
	objects  map[string]map[string]any
	requests []string
}

const memoryIndex = `{"kind":"APIGroupDiscoveryList","items":[
	{"metadata":{"name":"coordination.k8s.io"},"versions":[{"version":"v1","resources":[
		{"resource":"leases","responseKind":{"group":"coordination.k8s.io","version":"v1","kind":"Lease"},"scope":"Namespaced","singularResource":"lease",
		 "verbs":["create","delete","get","list","patch","update","watch"]}]}]},
	{"metadata":{"name":"events.k8s.io"},"versions":[{"version":"v1","resources":[
		{"resource":"events","responseKind":{"group":"events.k8s.io","version":"v1","kind":"Event"},"scope":"Namespaced","singularResource":"event",
		 "verbs":["create","delete","get","list","patch","update","watch"]}]}]}]}`

// inMemory gives a client of a server in memory.
func inMemory(t testing.TB) (*dynamic.Client, *memory) {
	t.Helper()
	server := &memory{objects: map[string]map[string]any{}}
	return server.connect(t, func(r *http.Request) error {
		if server.fault != nil {
			return server.fault(r)
		}
		return nil
	}), server
}

// connect gives a client on a line of its own, which fault may break for a request.
func (m *memory) connect(t testing.TB, fault func(*http.Request) error) *dynamic.Client {
	t.Helper()
	conn, err := transport.New("http://memory", &http.Client{Transport: line{m, fault}}, nil)
	require.NoError(t, err)
	client := dynamic.New(conn, nil)
	t.Cleanup(client.Close)
	return client
}

type line struct {
	server *memory
	fault  func(*http.Request) error
}

func (l line) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := l.fault(r); err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	l.server.answer(w, r)
	response := w.Result()
	response.Request = r
	return response, nil
}

func (m *memory) answer(w http.ResponseWriter, r *http.Request) {
	if index := map[string]string{"/api": `{"kind":"APIGroupDiscoveryList","items":[]}`, "/apis": memoryIndex}[r.URL.Path]; index != "" {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		_, _ = io.WriteString(w, index)
		return
	}
	if m.override != nil && m.override(w, r) {
		return
	}
	var body map[string]any
	if r.Body != nil {
		decoder := json.NewDecoder(r.Body)
		decoder.UseNumber()
		_ = decoder.Decode(&body)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, r.Method+" "+r.URL.Path)
	path := r.URL.Path
	if r.Method == http.MethodPost {
		path += "/" + body["metadata"].(map[string]any)["name"].(string)
	}
	there := m.objects[path]
	switch {
	case r.Method == http.MethodPost && there != nil:
		refuse(w, http.StatusConflict, "AlreadyExists")
		return
	case r.Method != http.MethodPost && there == nil:
		refuseObject(w, http.StatusNotFound, "NotFound", path[strings.LastIndex(path, "/")+1:])
		return
	case r.Method == http.MethodPut && body["metadata"].(map[string]any)["resourceVersion"] != there["metadata"].(map[string]any)["resourceVersion"]:
		refuse(w, http.StatusConflict, "Conflict")
		return
	case r.Method == http.MethodPatch:
		for field, value := range body { // of what tests send, fields are replaced as a whole
			there[field] = value
		}
		body = there
	case r.Method == http.MethodGet:
		body = there
	case r.Method == http.MethodDelete:
		delete(m.objects, path)
		body = there
	}
	if r.Method != http.MethodGet && r.Method != http.MethodDelete {
		m.version++
		metadata := body["metadata"].(map[string]any)
		metadata["resourceVersion"], metadata["uid"] = strconv.Itoa(m.version), path
		m.objects[path] = body
	}
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, code int, reason string) { refuseObject(w, code, reason, "") }

// refuseObject answers with a Status about an object.
func refuseObject(w http.ResponseWriter, code int, reason, name string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"it is so","details":{"name":%q}}`, code, reason, name)
}

// change writes an object as somebody else.
func (m *memory) change(part string, change func(object map[string]any)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for path, object := range m.objects {
		if strings.Contains(path, part) {
			m.version++
			object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(m.version)
			change(object)
		}
	}
}

// hold makes a Lease that a candidate holds for long.
func (m *memory) hold(name, holder string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects["/apis/coordination.k8s.io/v1/namespaces/shop/leases/"+name] = map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": name, "resourceVersion": "1"},
		"spec": map[string]any{"holderIdentity": holder, "leaseDurationSeconds": 100_000},
	}
}

// all gives copies of the objects whose path contains part.
func (m *memory) all(part string) (found []map[string]any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for path, object := range m.objects {
		if strings.Contains(path, part) {
			text, _ := json.Marshal(object)
			var copied map[string]any
			_ = json.Unmarshal(text, &copied)
			found = append(found, copied)
		}
	}
	return found
}

// seen gives the requests since the last call, without those of discovery.
func (m *memory) seen() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := m.requests
	m.requests = nil
	return seen
}
