package simulate

import (
	"net/http"
	"strings"

	"github.com/anykind/anykind/unstructured"
)

// request has the verb and the object of a request.
type request struct {
	verb, resource, subresource, namespace, name string // resource is a plural with its group
}

// parse returns the verb and the object of a request. ok is false for requests without a resource, such as discovery.
func parse(req *http.Request) (r request, ok bool) {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group = parts[1]
		parts = parts[3:]
	default:
		return r, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		r.namespace = parts[1]
		parts = parts[2:]
	}
	r.resource = parts[0]
	if group != "" {
		r.resource += "." + group
	}
	if len(parts) > 1 {
		r.name = parts[1]
	}
	if len(parts) > 2 {
		r.subresource = strings.Join(parts[2:], "/")
	}
	r.verb = verbOf(req, r.name)
	return r, true
}

func verbOf(req *http.Request, name string) string {
	switch req.Method {
	case http.MethodGet:
		query := req.URL.Query()
		switch {
		case query.Get("watch") == "true" || query.Get("watch") == "1":
			return "watch"
		case name == "":
			return "list"
		}
		return "get"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if strings.Contains(req.Header.Get("Content-Type"), "apply-patch") {
			return "apply"
		}
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return strings.ToLower(req.Method)
}

func (r request) isWrite() bool {
	switch r.verb {
	case "create", "update", "patch", "apply", "delete":
		return !strings.HasSuffix(r.resource, ".authorization.k8s.io") && !strings.HasSuffix(r.resource, ".authentication.k8s.io")
	}
	return false
}

func (r request) isLease() bool { return r.resource == "leases.coordination.k8s.io" }

// isIncidental reports whether a resource is excluded from the compared state: leases and events.
func isIncidental(resource string) bool {
	return resource == "leases.coordination.k8s.io" || resource == "events" || resource == "events.events.k8s.io"
}

func (r request) String() string {
	text := r.verb + " " + r.resource
	if r.subresource != "" {
		text += "/" + r.subresource
	}
	if object := r.object(); object != "" {
		text += " " + object
	}
	return text
}

// object returns namespace/name, or the part that is set.
func (r request) object() string { return strings.Trim(r.namespace+"/"+r.name, "/") }

// objectID identifies an object seen by a process.
type objectID struct{ resource, namespace, name string }

func (id objectID) String() string {
	return id.resource + " " + strings.Trim(id.namespace+"/"+id.name, "/")
}

func idOf(resource string, obj *unstructured.Object) objectID {
	return objectID{resource, obj.GetNamespace(), obj.GetName()}
}
