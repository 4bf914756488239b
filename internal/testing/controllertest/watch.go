package controllertest

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// event is a change of an object, encoded.
type event struct {
	path    string
	deleted bool
	labels  map[string]any
	text    string
}

// record assigns the next resourceVersion to a changed object and adds an event. Callers hold the lock.
func (s *Server) record(path string, isNew bool) {
	kind := "MODIFIED"
	if isNew {
		kind = "ADDED"
	}
	s.addEvent(path, kind, s.objects[path])
}

// delete deletes an object and adds an event. Callers hold the lock.
func (s *Server) delete(path string) {
	object := s.objects[path]
	delete(s.objects, path)
	s.addEvent(path, "DELETED", object)
}

// deleted reports whether an object of the path was deleted before. Callers hold the lock.
func (s *Server) deleted(path string) bool {
	for _, e := range s.events {
		if e.path == path && e.deleted {
			return true
		}
	}
	return false
}

func (s *Server) addEvent(path, kind string, object map[string]any) {
	s.version++
	object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(s.version)
	text, _ := json.Marshal(map[string]any{"type": kind, "object": object})
	s.events = append(s.events, event{path, kind == "DELETED", labelsOf(object), string(text)})
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// isCollection reports whether a path is that of all leases of a namespace.
func isCollection(path string) bool {
	return strings.HasSuffix(path, "/leases")
}

// isPrecondition reports whether the preconditions of a deletion hold.
func isPrecondition(body, existing map[string]any) bool {
	preconditions, _ := body["preconditions"].(map[string]any)
	for field, value := range preconditions {
		if existing["metadata"].(map[string]any)[field] != value {
			return false
		}
	}
	return true
}

// matches reports whether the path and the labels of an object are selected by a request. Selectors have the form name=value.
func matches(r *http.Request, path string, labels map[string]any) bool {
	if !strings.HasPrefix(path, r.URL.Path+"/") {
		return false
	}
	name, value, isSelector := strings.Cut(r.URL.Query().Get("labelSelector"), "=")
	return !isSelector || labels[name] == value
}

func labelsOf(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	return labels
}

// list returns the selected objects. Callers hold the lock.
func (s *Server) list(r *http.Request) map[string]any {
	items := []any{}
	for path, object := range s.objects {
		if matches(r, path, labelsOf(object)) {
			items = append(items, object)
		}
	}
	return map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": strconv.Itoa(max(s.version, 1))}, "items": items}
}

// watch returns the response to a watch, and nil for other requests.
func (s *Server) watch(r *http.Request) *http.Response {
	query := r.URL.Query()
	if r.Method != http.MethodGet || query.Get("watch") == "" || !isCollection(r.URL.Path) || s.Override != nil {
		return nil
	}
	reader, writer := io.Pipe()
	go func() {
		version, _ := strconv.Atoi(query.Get("resourceVersion"))
		if query.Get("sendInitialEvents") != "" {
			version = s.writeInitialEvents(r, writer)
		}
		for {
			s.mu.Lock()
			var texts []string
			for _, e := range s.events[min(version, len(s.events)):] { // the event of version n has the index n-1
				if matches(r, e.path, e.labels) {
					texts = append(texts, e.text)
				}
			}
			version = s.version
			if s.changed == nil {
				s.changed = make(chan struct{})
			}
			changed := s.changed
			s.mu.Unlock()
			for _, text := range texts {
				if _, err := io.WriteString(writer, text+"\n"); err != nil {
					return
				}
			}
			select {
			case <-changed:
			case <-r.Context().Done():
				_ = writer.CloseWithError(r.Context().Err())
				return
			}
		}
	}()
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: reader, ContentLength: -1, Request: r,
	}
}

// writeInitialEvents writes the selected objects and the bookmark behind them, and returns its resourceVersion.
func (s *Server) writeInitialEvents(r *http.Request, w io.Writer) (version int) {
	s.mu.Lock()
	list := s.list(r)
	version = max(s.version, 1)
	var text strings.Builder
	for _, item := range list["items"].([]any) {
		added, _ := json.Marshal(map[string]any{"type": "ADDED", "object": item})
		text.WriteString(string(added) + "\n")
	}
	s.mu.Unlock()
	bookmark, _ := json.Marshal(map[string]any{"type": "BOOKMARK", "object": map[string]any{
		"kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(version), "annotations": map[string]any{"k8s.io/initial-events-end": "true"}},
	}})
	_, _ = io.WriteString(w, text.String()+string(bookmark)+"\n")
	return version
}
