package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// server is an API server. Lists without a resourceVersion and lists at an exact resourceVersion are served from the world.
// Watches and the remaining lists are served from its watch cache. The fields describe the watch cache. They are changed by set.
type server struct {
	world *world
	kind  kind

	mu sync.Mutex
	// frontier is the revision of a watch cache that is behind, 0 for a current watch cache.
	frontier int64
	// lost has the revisions with events lost by the watch cache.
	lost map[int64]bool
	// oldest is the oldest revision accepted as the begin of a watch.
	oldest int64
	// isQuiet stops the progress of the watch cache by changes of other resources, and all bookmarks. Servers before 1.21 were so.
	isQuiet bool
	// noWatchList rejects WatchList, noInitialEnd never ends the initial events of a WatchList.
	noWatchList, noInitialEnd bool
	// noCause leaves out the reason of the cause in the error for a too large resourceVersion, as servers before 1.18.6 did.
	noCause bool
	// listTime is the time of each list.
	listTime time.Duration
	// window is the number of changes kept by the watch cache, 0 for all.
	window int64
	// isGone stops serving the resource: its definition is deleted.
	isGone bool
	// nextWatch serves the next watch that is not a WatchList.
	nextWatch http.HandlerFunc
	// streams are the ends of open watches: each receives the event that ends the watch, "" for none.
	streams map[chan string]bool
	// lists are the requests for all objects. rejected is the number of lists with a too large resourceVersion.
	lists, rejected int
}

// kind is the served resource.
type kind struct{ path, apiVersion, kind string }

var (
	configMaps = kind{"/api/v1/configmaps", "v1", "ConfigMap"}
	widgets    = kind{"/apis/example.com/v1/widgets", "example.com/v1", "Widget"}
)

// namespaced returns the path of the objects in the namespace with all objects.
func (k kind) namespaced() string {
	return path.Dir(k.path) + "/namespaces/" + namespace + "/" + path.Base(k.path)
}

const definitionPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"

func newServer(w *world, k kind) *server {
	return &server{world: w, kind: k, lost: map[int64]bool{}, streams: map[chan string]bool{}}
}

// set changes the server and wakes its streams.
func (s *server) set(change func()) {
	s.mu.Lock()
	change()
	s.mu.Unlock()
	s.world.wake()
}

// end ends all watches with an event, "" for none.
func (s *server) end(event string) {
	for s.open() > 0 {
		s.mu.Lock()
		for stream := range s.streams {
			select {
			case stream <- event:
			default: // it is about to end
			}
		}
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// open returns the number of open watches.
func (s *server) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams)
}

// cache returns the changes and the revision of the watch cache.
func (s *server) cache() (visible []change, revision int64) {
	changes, revision, _ := s.world.snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isQuiet && len(changes) > 0 {
		revision = changes[len(changes)-1].revision
	}
	if s.frontier > 0 {
		revision = min(revision, s.frontier)
	}
	for _, c := range changes {
		if c.revision <= revision && !s.lost[c.revision] {
			visible = append(visible, c)
		}
	}
	return visible, revision
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	isGone := s.isGone
	s.mu.Unlock()
	query := r.URL.Query()
	switch {
	case r.URL.Path == "/api" || r.URL.Path == "/apis":
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		_, _ = io.WriteString(w, discoveryDocument(r.URL.Path))
	case r.URL.Path == definitionPath && !isGone:
		respond(w, http.StatusOK, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com","uid":"definition-1"}}`)
	case r.URL.Path == definitionPath:
		respond(w, http.StatusNotFound, strings.Replace(status(http.StatusNotFound, "NotFound", ""), `"details":{`, `"details":{"name":"widgets.example.com",`, 1))
	case r.URL.Path != s.kind.path && r.URL.Path != s.kind.namespaced() || isGone:
		http.Error(w, "404 page not found", http.StatusNotFound)
	case query.Get("watch") != "":
		s.watch(w, r)
	default:
		s.list(w, r)
	}
}

func (s *server) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	version := query.Get("resourceVersion")
	wanted, _ := strconv.ParseInt(version, 10, 64)
	s.mu.Lock()
	listTime := s.listTime
	if query.Get("resourceVersionMatch") != "Exact" { // the lists of an audit
		s.lists++
	}
	s.mu.Unlock()
	changes, revision, _ := s.world.snapshot()
	switch cached, cachedRevision := s.cache(); {
	case query.Get("resourceVersionMatch") == "Exact":
		revision = wanted
	case version == "" || query.Get("limit") != "" && wanted > 0:
	case wanted > cachedRevision:
		s.reject(w, wanted, cachedRevision)
		return
	default:
		changes = cached
		revision = cachedRevision
	}
	time.Sleep(listTime)
	items := []json.RawMessage{}
	field := query.Get("fieldSelector")
	for _, c := range sorted(stateAt(changes, revision)) {
		if field == "" || slices.Contains(strings.Split(field, ","), "metadata.name="+c.name) {
			items = append(items, json.RawMessage(s.object(c)))
		}
	}
	body, _ := json.Marshal(map[string]any{
		"apiVersion": s.kind.apiVersion, "kind": s.kind.kind + "List", "metadata": map[string]any{"resourceVersion": strconv.FormatInt(revision, 10)}, "items": items,
	})
	respond(w, http.StatusOK, string(body))
}

// reject responds to a resourceVersion not yet reached by the watch cache. Servers wait three seconds before.
func (s *server) reject(w http.ResponseWriter, wanted, current int64) {
	s.mu.Lock()
	s.rejected++
	cause := `"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],`
	if s.noCause {
		cause = `"causes":[{"message":"Too large resource version"}],`
	}
	s.mu.Unlock()
	time.Sleep(200 * time.Millisecond)
	body := status(http.StatusGatewayTimeout, "Timeout", fmt.Sprintf("Too large resource version: %d, current: %d", wanted, current))
	respond(w, http.StatusGatewayTimeout, strings.Replace(body, `"details":{`, `"details":{`+cause+`"retryAfterSeconds":1,`, 1))
}

func (s *server) watch(w http.ResponseWriter, r *http.Request) {
	isWatchList := r.URL.Query().Get("sendInitialEvents") == "true"
	s.mu.Lock()
	next := s.nextWatch
	noWatchList := s.noWatchList
	noInitialEnd := s.noInitialEnd
	if !isWatchList {
		s.nextWatch = nil
	}
	s.mu.Unlock()
	switch {
	case isWatchList && noWatchList:
		respond(w, http.StatusUnprocessableEntity, status(http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is forbidden"))
	case !isWatchList && next != nil:
		next(w, r)
	default:
		newStream(s, r, isWatchList && !noInitialEnd).serve(w)
	}
}

// object returns the JSON of an object.
func (s *server) object(c change) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":"%d"}}`,
		s.kind.apiVersion, s.kind.kind, namespace, c.name, c.uid, c.revision)
}

func (s *server) bookmark(revision int64, isInitialEnd bool) string {
	annotations := ""
	if isInitialEnd {
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	return event("BOOKMARK", fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"%d"%s}}`, s.kind.apiVersion, s.kind.kind, revision, annotations))
}

func event(eventType, object string) string {
	return `{"type":"` + eventType + `","object":` + object + "}\n"
}

func status(code int, reason, message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"details":{"kind":"objects"},"code":%d}`,
		cmp.Or(message, reason), reason, code)
}

func respond(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
}

// discoveryDocument returns the aggregated discovery document of /api or /apis.
func discoveryDocument(root string) string {
	resource := func(plural, kind, group string) string {
		return fmt.Sprintf(`{"resource":%q,"responseKind":{"group":%q,"version":"v1","kind":%q},"scope":"Namespaced","singularResource":"","verbs":["get","list","watch"]}`,
			plural, group, kind)
	}
	name, item := "", resource("configmaps", "ConfigMap", "")
	if root == "/apis" {
		name, item = "example.com", resource("widgets", "Widget", "example.com")
	}
	return fmt.Sprintf(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":%q},"versions":[{"version":"v1","freshness":"Current","resources":[%s]}]}]}`, name, item)
}

// front is the address of the servers: it passes requests to the last server.
type front struct {
	gate    sync.RWMutex // locked while no request is accepted
	mu      sync.Mutex
	servers []*server // the last server serves requests
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.gate.RLock()
	s := f.current()
	f.gate.RUnlock()
	s.ServeHTTP(w, r)
}

func (f *front) current() *server {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.servers[len(f.servers)-1]
}

// interrupt ends all watches with an event, "" for none, and accepts no request during changes.
func (f *front) interrupt(event string, changes func()) {
	f.gate.Lock()
	defer f.gate.Unlock()
	f.current().end(event)
	changes()
}

// expire ends all watches because of an expired resourceVersion, and lets none resume from before the changes.
func (f *front) expire(changes func()) {
	f.interrupt(event("ERROR", status(http.StatusGone, "Expired", "")), func() {
		changes()
		s := f.current()
		s.set(func() { s.oldest = s.world.now() })
	})
}

// use passes requests to a server from now on.
func (f *front) use(s *server) {
	f.interrupt("", func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.servers = append(f.servers, s)
	})
}

// counts returns the numbers of lists and of rejected lists of all servers.
func (f *front) counts() (lists, rejected int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.servers {
		s.mu.Lock()
		lists += s.lists
		rejected += s.rejected
		s.mu.Unlock()
	}
	return lists, rejected
}
