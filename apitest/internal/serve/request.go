package serve

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// RequestInfo is parsed from a request's method, path and query, like the API server's for authorization and audit.
type RequestInfo struct {
	IsResource bool
	// Verb is get, list, watch, create, update, patch, delete or deletecollection. For non-resource paths it is the method in lower
	// case.
	Verb                   string
	Group, Version         string
	Namespace              string
	Resource, Subresource  string
	Name                   string
	Rest                   []string // the path below the subresource
	isDeprecatedWatch      bool
	namespaceIsPartOfScope bool
}

// parseRequestInfo never fails: any path that is not a resource's is a non-resource path.
func parseRequestInfo(req *http.Request) *RequestInfo {
	info := &RequestInfo{Verb: strings.ToLower(req.Method)}
	parts := splitPath(req.URL.Path)
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[1:]
	case len(parts) >= 4 && parts[0] == "apis":
		info.Group = parts[1]
		parts = parts[2:]
	default:
		return info
	}
	info.IsResource = true
	info.Version = parts[0]
	parts = parts[1:]
	info.Verb = verbOfMethod(req.Method)
	if parts[0] == "watch" && len(parts) > 1 {
		info.isDeprecatedWatch = true
		info.Verb = "watch"
		parts = parts[1:]
	}
	info.parseResource(parts)
	if info.Name == "" {
		info.parseCollection(req)
	}
	return info
}

func (info *RequestInfo) parseResource(parts []string) {
	if parts[0] == "namespaces" && len(parts) > 1 {
		info.Namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
			info.namespaceIsPartOfScope = true
		}
	}
	info.Resource = parts[0]
	if len(parts) > 1 {
		info.Name = parts[1]
	}
	if len(parts) > 2 {
		info.Subresource = parts[2]
		info.Rest = parts[3:]
	}
}

// parseCollection sets the verb of a collection: list, watch or deletecollection.
func (info *RequestInfo) parseCollection(req *http.Request) {
	switch info.Verb {
	case "get", "watch":
		info.Verb = "list"
		query := req.URL.Query()
		var opts metainternalversion.ListOptions
		if err := metainternalscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &opts); err != nil {
			if isTrue, err := strconv.ParseBool(query.Get("watch")); err == nil {
				opts.Watch = isTrue
			}
		}
		if opts.Watch || info.isDeprecatedWatch {
			info.Verb = "watch"
		}
		if opts.FieldSelector != nil {
			if name, found := opts.FieldSelector.RequiresExactMatch("metadata.name"); found && isPathSegment(name) {
				info.Name = name
			}
		}
	case "delete":
		info.Verb = "deletecollection"
		if selector, err := fields.ParseSelector(req.URL.Query().Get("fieldSelector")); err == nil {
			if name, found := selector.RequiresExactMatch("metadata.name"); found && isPathSegment(name) {
				info.Name = name
			}
		}
	}
}

func verbOfMethod(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodGet, http.MethodHead:
		return "get"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return ""
}

func splitPath(path string) []string {
	path = strings.Trim(path, "/")
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

func isPathSegment(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/%")
}

// Record is a request as the server's history has it. The body is that of the request.
type Record struct {
	RequestInfo
	Time        time.Time
	Duration    time.Duration
	Method      string
	Path, Query string
	User        string
	UserAgent   string
	ContentType string
	Body        []byte
	Warnings    []string
	Code        int   // of the response; 0 if there was none
	Revision    int64 // of the store when the request arrived
}

func newRecord(req *http.Request, info *RequestInfo, now time.Time, revision int64) *Record {
	return &Record{
		RequestInfo: *info, Time: now, Method: req.Method, Path: req.URL.Path, Query: req.URL.RawQuery,
		UserAgent: req.UserAgent(), ContentType: req.Header.Get("Content-Type"), Revision: revision,
	}
}

// statusRecorder keeps the status code of a response.
type statusRecorder struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (r *statusRecorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *statusRecorder) Write(data []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	return r.ResponseWriter.Write(data)
}

// Hijack implements http.Hijacker, for connections that are upgraded.
func (r *statusRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if r.code == 0 {
		r.code = http.StatusSwitchingProtocols
	}
	return http.NewResponseController(r.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func newID() string { return string(uuid.NewUUID()) }
