package cache_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/scripted"
	"github.com/anykind/anykind/transport"
)

// revisions is a server of pods with all its revisions, like etcd. Its watches can lose events.
type revisions struct {
	*scripted.Server

	mu         sync.Mutex
	history    []map[string]*object // by revision; the key is namespace/name
	lost       map[int]bool         // events by revision
	changed    chan struct{}
	watchCache map[string]*object // of lists that are not exact; nil for the last revision
	snapshot   map[string]*object // of exact lists of all names; nil for the revision
	pageDelay  time.Duration
	fail       http.HandlerFunc // of audits
	failPage   int
}

func newRevisions() *revisions {
	s := &revisions{Server: scripted.New("/v1 pods pod Pod po"), history: []map[string]*object{{}}, lost: map[int]bool{}, changed: make(chan struct{})}
	s.Handle("", s.serve)
	s.write("shop/first", pod("shop", "first", "web", 0))
	return s
}

// pods returns a handle on the pods of all namespaces.
func (s *revisions) pods(t testing.TB) *dynamic.Resource {
	t.Helper()
	client := dynamic.New(scripted.Connect(t, s, &transport.Options{Namespace: "shop"}), nil)
	t.Cleanup(client.Close)
	pods, err := client.Resource(t.Context(), "pods")
	require.NoError(t, err)
	return pods.AllNamespaces()
}

// write stores an object, or deletes it if obj is nil.
func (s *revisions) write(key string, obj *object) { s.commit(key, obj, true) }

// lose is write without an event.
func (s *revisions) lose(key string, obj *object) { s.commit(key, obj, false) }

func (s *revisions) commit(key string, obj *object, isSent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := maps.Clone(s.history[len(s.history)-1])
	if obj == nil {
		delete(state, key)
	} else {
		obj.SetAPIVersion("v1")
		obj.SetResourceVersion(strconv.Itoa(len(s.history)))
		state[key] = obj
	}
	s.lost[len(s.history)] = !isSent
	s.history = append(s.history, state)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *revisions) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("watch") {
		s.watch(w, r)
		return
	}
	s.list(w, r)
}

// lists returns the number of requests for pages of audits.
func (s *revisions) lists() (count int) {
	for _, request := range s.Requests() {
		if strings.Contains(request.URI, "limit=") {
			count++
		}
	}
	return count
}

// selection selects the objects of a request.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func selectionOf(r *http.Request) selection {
	byLabel, _ := labels.Parse(r.URL.Query().Get("labelSelector"))
	byField, _ := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	_, namespace, _ := strings.Cut(strings.TrimSuffix(r.URL.Path, "/pods"), "/namespaces/")
	return selection{namespace, byLabel, byField}
}

func (s selection) has(obj *object) bool {
	return (s.namespace == "" || s.namespace == obj.GetNamespace()) && s.labels.Matches(labels.Set(obj.GetLabels())) &&
		s.fields.Matches(fields.Set{"metadata.name": obj.GetName()})
}

// list serves a page. Its continue token is the revision and the offset.
func (s *revisions) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	s.mu.Lock()
	revision := len(s.history) - 1
	offset := 0
	isExact := query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact)
	if isExact {
		revision, _ = strconv.Atoi(query.Get("resourceVersion"))
	}
	if token := query.Get("continue"); token != "" {
		_, _ = fmt.Sscanf(token, "%d-%d", &revision, &offset)
	}
	state := s.history[revision]
	if query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchNotOlderThan) && s.watchCache != nil {
		state = s.watchCache
	}
	if isExact && s.snapshot != nil && !query.Has("fieldSelector") {
		state = s.snapshot
	}
	fail := s.fail
	if fail != nil && (isExact || offset > 0) && (s.failPage > 0) == (offset > 0) {
		s.fail = nil
	} else {
		fail = nil
	}
	delay := s.pageDelay
	s.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-r.Context().Done():
		return
	}
	if fail != nil {
		fail(w, r)
		return
	}
	var items []string
	selected := selectionOf(r)
	for _, key := range slices.Sorted(maps.Keys(state)) {
		if selected.has(state[key]) {
			items = append(items, podText(state[key]))
		}
	}
	meta := fmt.Sprintf(`"resourceVersion":"%d"`, revision)
	const pageSize = 2
	if items = items[min(offset, len(items)):]; len(items) > pageSize {
		items = items[:pageSize]
		meta += fmt.Sprintf(`,"continue":"%d-%d"`, revision, offset+pageSize)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{%s},"items":[%s]}`, meta, strings.Join(items, ","))
}

// watch sends events, and a bookmark every minute.
func (s *revisions) watch(w http.ResponseWriter, r *http.Request) {
	selected := selectionOf(r)
	next, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	next++
	flush := http.NewResponseController(w)
	if r.URL.Query().Get("sendInitialEvents") != "" {
		s.mu.Lock()
		state := s.history[len(s.history)-1]
		next = len(s.history)
		s.mu.Unlock()
		for _, obj := range state {
			if selected.has(obj) {
				_, _ = io.WriteString(w, scripted.Event("ADDED", podText(obj)))
			}
		}
		_, _ = io.WriteString(w, scripted.InitialEventsEnd("v1", "Pod", strconv.Itoa(next-1)))
	}
	timeout, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	end := time.After(time.Duration(timeout) * time.Second)
	bookmarks := time.NewTicker(time.Minute)
	defer bookmarks.Stop()
	for {
		s.mu.Lock()
		for ; next < len(s.history); next++ {
			if s.lost[next] {
				continue
			}
			before := s.history[next-1]
			after := s.history[next]
			both := maps.Clone(before)
			maps.Copy(both, after)
			for key := range both {
				if before[key] != after[key] {
					_, _ = io.WriteString(w, selected.event(before[key], after[key], next))
				}
			}
		}
		changed := s.changed
		s.mu.Unlock()
		_ = flush.Flush()
		select {
		case <-changed:
		case <-bookmarks.C:
			_, _ = io.WriteString(w, scripted.Event("BOOKMARK", fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d"}}`, next-1)))
		case <-end:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// event returns the event of a change: DELETED if a watch does not select the object any more.
func (s selection) event(before, after *object, revision int) string {
	had := before != nil && s.has(before)
	has := after != nil && s.has(after)
	switch {
	case had && has:
		return scripted.Event("MODIFIED", podText(after))
	case had:
		last := before.DeepCopy()
		last.SetResourceVersion(strconv.Itoa(revision))
		return scripted.Event("DELETED", podText(last))
	case has:
		return scripted.Event("ADDED", podText(after))
	default:
		return ""
	}
}

func podText(obj *object) string {
	data, _ := obj.MarshalJSON()
	return string(data)
}

// stored returns the resourceVersions of the server's objects by key.
func (s *revisions) stored(selected func(*object) bool) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	versions := map[string]string{}
	for key, obj := range s.history[len(s.history)-1] {
		if selected == nil || selected(obj) {
			versions[key] = obj.GetResourceVersion()
		}
	}
	return versions
}

// snapshotOr returns the objects of exact lists of all names.
func (s *revisions) snapshotOr(revision int) map[string]*object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot != nil {
		return s.snapshot
	}
	return s.history[revision]
}
