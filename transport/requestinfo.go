package transport

import (
	"net/http"
	"strings"
)

// verbAndResource reads a request as the API server does: which verb it asks for, of which resource. Paths are
// described at https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris.
func verbAndResource(req *http.Request, prefix string) (verb, resource string) {
	verb = strings.ToLower(req.Method)
	parts := strings.Split(strings.Trim(strings.TrimPrefix(req.URL.Path, prefix), "/"), "/")
	group := ""
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group, parts = parts[1], parts[3:]
	default:
		return verb, ""
	}
	// A namespace is a resource itself, and what its own subresources belong to.
	inNamespace := parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize"
	if inNamespace {
		parts = parts[2:]
	}
	resource = parts[0]
	if group != "" {
		resource += "." + group
	}
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return verbOf(req, len(parts) > 1), resource
}

func verbOf(req *http.Request, named bool) string {
	switch req.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodDelete:
		if !named {
			return "deletecollection"
		}
	case http.MethodGet:
		switch watch := req.URL.Query().Get("watch"); {
		case watch == "1" || watch == "true":
			return "watch"
		case !named:
			return "list"
		}
	}
	return strings.ToLower(req.Method)
}
