package transport

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/fields"
)

// requestInfo has the attributes by which the API server authorizes a request.
type requestInfo struct {
	path                            string // below that of the server's URL
	verb, resource, namespace, name string
}

// parseRequestInfo parses a request as the API server does. prefix is the path of the server's URL. See
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris.
func parseRequestInfo(req *http.Request, prefix string) requestInfo {
	info := requestInfo{path: strings.TrimPrefix(req.URL.Path, prefix)}
	parts := strings.Split(strings.Trim(info.path, "/"), "/")
	group := ""
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group, parts = parts[1], parts[3:]
	default:
		info.verb = strings.ToLower(req.Method)
		return info
	}
	isWatchPath := parts[0] == "watch" && len(parts) > 1 // the deprecated /api/v1/watch/pods
	if isWatchPath {
		parts = parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		info.namespace = parts[1]
		// A namespace is a resource itself, with subresources of its own.
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	info.resource = parts[0]
	if group != "" {
		info.resource += "." + group
	}
	if len(parts) > 1 {
		info.name = parts[1]
	}
	if len(parts) > 2 {
		info.resource += "/" + parts[2]
	}
	if info.verb = requestVerb(req, info.name != ""); isWatchPath {
		info.verb = "watch"
	} else if info.name == "" && (info.verb == "list" || info.verb == "watch") {
		info.name = selectedName(req.URL)
	}
	return info
}

func requestVerb(req *http.Request, named bool) string {
	switch req.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodDelete:
		if !named {
			return "deletecollection"
		}
	case http.MethodGet, http.MethodHead:
		switch {
		case named:
			return "get"
		case isWatch(req.URL):
			return "watch"
		default:
			return "list"
		}
	}
	return strings.ToLower(req.Method)
}

// isWatch reports whether the query has the option watch, with any value but false and 0.
func isWatch(u *url.URL) bool {
	if !strings.Contains(u.RawQuery, "watch") {
		return false
	}
	values := u.Query()["watch"]
	return len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

// selectedName returns the name that a field selector requires as metadata.name, "" for none.
func selectedName(u *url.URL) string {
	if !strings.Contains(u.RawQuery, "metadata.name") {
		return ""
	}
	selector, err := fields.ParseSelector(u.Query().Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, ok := selector.RequiresExactMatch("metadata.name")
	if !ok || len(content.IsPathSegmentName(name)) > 0 {
		return ""
	}
	return name
}
