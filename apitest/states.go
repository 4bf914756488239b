package apitest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/apitest/internal/store"
	"github.com/anykind/anykind/unstructured"
)

// State is a past or current state of an object, from the write with resourceVersion Revision on.
type State struct {
	Type watch.EventType // ADDED, MODIFIED, or DELETED with the last state
	// Object is in its storage version. It is read-only.
	Object   *unstructured.Object
	Revision int64
}

// StatesOf returns the states of an object in the order of their writes, including earlier objects of that name. The resource is
// a plural with its group: "pods", "deployments.apps". The history is limited by Options.History and the last Compact. Its first
// entry is the state at that limit, as ADDED.
func (s *Server) StatesOf(resource, namespace, name string) []State {
	gr := schema.ParseGroupResource(resource)
	var found []State
	for _, event := range s.store.History(store.Key{Group: gr.Group, Resource: gr.Resource, Namespace: namespace, Name: name}) {
		found = append(found, State{event.Type, &unstructured.Object{Object: event.Object}, event.Revision})
	}
	return found
}

// Objects returns all stored objects in their storage versions, ordered by resource, namespace and name. They are read-only.
func (s *Server) Objects() []*unstructured.Object {
	var all []*unstructured.Object
	for _, obj := range s.store.Objects() {
		all = append(all, &unstructured.Object{Object: obj})
	}
	return all
}

// OfResource returns a filter for requests to a resource. The resource is a plural with its group and subresource, such as
// "pods", "deployments.apps" or "deployments.apps/status". Without verbs it selects the writes: create, update, patch, delete and
// deletecollection.
func OfResource(resource string, verbs ...string) func(Request) bool {
	name, subresource, _ := strings.Cut(resource, "/")
	gr := schema.ParseGroupResource(name)
	if len(verbs) == 0 {
		verbs = []string{"create", "update", "patch", "delete", "deletecollection"}
	}
	return func(r Request) bool {
		return r.Group == gr.Group && r.Resource == gr.Resource && r.Subresource == subresource && slices.Contains(verbs, r.Verb)
	}
}

// Named returns a filter for requests to a named object. namespace is "" for a cluster-scoped object.
func Named(namespace, name string) func(Request) bool {
	return func(r Request) bool { return r.Namespace == namespace && r.Name == name }
}

// Succeeded reports whether the response has a status code below 400.
func Succeeded(r Request) bool { return r.Code > 0 && r.Code < 400 }

// AssertRequests fails the test unless the number of finished requests with every match true equals want:
//
//	server.AssertRequests(t, 1, apitest.OfResource("widgets.shop.example.com/status"), apitest.Succeeded)
func (s *Server) AssertRequests(t testing.TB, want int, match ...func(Request) bool) bool {
	t.Helper()
	found := s.Requests(match...)
	if len(found) == want {
		return true
	}
	t.Errorf("the server got %d matching requests, want %d:%s", len(found), want, describe(found))
	return false
}

// AssertNoUpdateAfterDeletion fails the test if an update or patch arrived after its object was deleted and before an object of
// the same name was created.
func (s *Server) AssertNoUpdateAfterDeletion(t testing.TB) bool {
	t.Helper()
	late := s.Requests(func(r Request) bool {
		return r.Name != "" && (r.Verb == "update" || r.Verb == "patch") && s.wasDeleted(r)
	})
	if len(late) > 0 {
		t.Errorf("%d updates of deleted objects:%s", len(late), describe(late))
	}
	return len(late) == 0
}

// wasDeleted reports whether the object's last write before the request is its deletion.
func (s *Server) wasDeleted(r Request) bool {
	deleted := false
	for _, event := range s.store.History(store.Key{Group: r.Group, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}) {
		if event.Revision <= r.Revision {
			deleted = event.Type == watch.Deleted
		}
	}
	return deleted
}

func describe(requests []Request) string {
	var text strings.Builder
	for _, r := range requests {
		fmt.Fprintf(&text, "\n\t%s %s: %d by %s", r.Verb, r.Path, r.Code, r.UserAgent)
	}
	if len(requests) == 0 {
		text.WriteString(" none")
	}
	return text.String()
}
