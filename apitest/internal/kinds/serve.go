package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/apitest/internal/recorded"
)

// Serves reports whether ServeHTTP handles the path: discovery, OpenAPI, version and health.
func (r *Registry) Serves(path string) bool {
	parts := splitPath(path)
	if len(parts) == 0 {
		return true
	}
	switch parts[0] {
	case "api":
		return len(parts) <= 2
	case "apis":
		return len(parts) <= 3
	case "openapi", "version", "healthz", "livez", "readyz":
		return true
	}
	return false
}

// ServeHTTP serves discovery (/api, /apis, /api/v1, /apis/GROUP, /apis/GROUP/VERSION), /openapi/v2, /openapi/v3, /version,
// /healthz, /livez and /readyz like the real server.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		writeStatus(w, req, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource")
		return
	}
	s := r.snapshot()
	if s.err != nil {
		writeStatus(w, req, http.StatusInternalServerError, metav1.StatusReasonInternalError, s.err.Error())
		return
	}
	parts := splitPath(req.URL.Path)
	if len(parts) == 0 {
		parts = []string{""}
	}
	switch parts[0] {
	case "":
		writeIndented(w, map[string]any{"paths": s.paths()})
	case "api", "apis":
		s.serveDiscovery(w, req, parts)
	case "openapi":
		s.serveOpenAPI(w, req, parts)
	case "version":
		serveVersion(w, req)
	case "healthz", "livez", "readyz":
		serveHealth(w, req, parts[0])
	default:
		http.NotFound(w, req)
	}
}

func (s *snapshot) serveDiscovery(w http.ResponseWriter, req *http.Request, parts []string) {
	if len(parts) == 1 {
		s.serveRoot(w, req, parts[0])
		return
	}
	groupName := ""
	versionName := ""
	if parts[0] == "apis" {
		groupName = parts[1]
		parts = parts[1:]
	}
	if len(parts) > 1 {
		versionName = parts[1]
	}
	found := s.group(groupName)
	switch served := s.version(groupName, versionName); {
	case served != nil:
		writeObject(w, req, served.resourceList())
	case versionName == "" && found != nil && groupName != "":
		legacy := found.legacy()
		legacy.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		writeObject(w, req, legacy)
	case groupName == "":
		writeStatus(w, req, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
	default:
		w.Header().Set("Cache-Control", "no-cache, private")
		http.NotFound(w, req)
	}
}

// serveRoot serves /api and /apis, plain or aggregated.
func (s *snapshot) serveRoot(w http.ResponseWriter, req *http.Request, root string) {
	switch negotiate(req, true) {
	case mediaAggregated:
		documents, err := s.aggregated()
		if err != nil {
			writeStatus(w, req, http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
			return
		}
		document := documents.groups
		if root == "api" {
			document = documents.core
		}
		document.serve(w, req)
	default:
		if root == "api" {
			writeObject(w, req, apiVersions(req.Host))
		} else {
			writeObject(w, req, s.groupList())
		}
	}
}

func (d aggregatedDocument) serve(w http.ResponseWriter, req *http.Request) {
	etag := strconv.Quote(d.etag)
	w.Header().Set("ETag", etag)
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Cache-Control", "public")
	if req.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", aggregatedType)
	writeText(w, req, d.json)
}

// paths returns the response to /.
func (s *snapshot) paths() []string {
	paths := []string{"/api", "/api/v1", "/apis", "/apis/"}
	for _, g := range s.groups {
		if g.name == "" {
			continue
		}
		paths = append(paths, "/apis/"+g.name)
		for _, v := range g.versions {
			paths = append(paths, "/apis/"+v.name())
		}
	}
	return append(paths, "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/readyz", "/version")
}

func serveVersion(w http.ResponseWriter, req *http.Request) {
	groups, err := recorded.ReadGroups()
	if err != nil {
		writeStatus(w, req, http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
		return
	}
	// JSON only, with any parameters
	if header := strings.Join(req.Header.Values("Accept"), ","); header == "" || slices.ContainsFunc(ParseAccept(header), AcceptClause.IsJSON) {
		writeIndented(w, groups.Version)
		return
	}
	writeStatus(w, req, http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, notAcceptable)
}

func serveHealth(w http.ResponseWriter, req *http.Request, check string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !req.URL.Query().Has("verbose") {
		fmt.Fprint(w, "ok")
		return
	}
	fmt.Fprintf(w, "[+]ping ok\n%s check passed\n", check)
}

const notAcceptable = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"

// writeObject writes an object as JSON or YAML, according to the Accept header.
func writeObject(w http.ResponseWriter, req *http.Request, obj any) {
	media := negotiate(req, false)
	if media == mediaNone {
		writeStatus(w, req, http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, notAcceptable)
		return
	}
	writeMedia(w, req, media, http.StatusOK, obj)
}

func writeMedia(w http.ResponseWriter, req *http.Request, media media, code int, obj any) {
	text, err := json.Marshal(obj)
	if err == nil && media == mediaYAML {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Cache-Control", "no-cache, private")
	if media == mediaYAML {
		w.Header().Set("Content-Type", "application/yaml")
		w.WriteHeader(code)
		_, _ = w.Write(text)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	writeText(w, req, text)
}

// writeText writes JSON, indented for browsers and command-line tools.
func writeText(w http.ResponseWriter, req *http.Request, text []byte) {
	pretty, err := strconv.ParseBool(req.URL.Query().Get("pretty"))
	agent := req.UserAgent()
	if err != nil {
		pretty = strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
	}
	var indented bytes.Buffer
	if pretty && json.Indent(&indented, text, "", "  ") == nil {
		_, _ = w.Write(indented.Bytes())
		return
	}
	_, _ = w.Write(append(slices.Clip(text), '\n'))
}

// writeIndented writes indented JSON.
func writeIndented(w http.ResponseWriter, obj any) {
	text, err := json.MarshalIndent(obj, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Cache-Control", "no-cache, private")
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

func writeStatus(w http.ResponseWriter, req *http.Request, code int, reason metav1.StatusReason, message string) {
	writeMedia(w, req, negotiate(req, false), code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}

func splitPath(path string) []string {
	path = strings.Trim(path, "/")
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}
