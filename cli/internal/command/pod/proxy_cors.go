package pod

import (
	"net/http"
	"strings"
)

// CORS headers for pages of --accept-origins. The API server does not know these origins, so the proxy responds to preflight requests
// and permits scripts to read responses. Credentials are not permitted: the proxy has its own.
const (
	allowOrigin    = "Access-Control-Allow-Origin"
	requestMethod  = "Access-Control-Request-Method"
	requestHeaders = "Access-Control-Request-Headers"
)

// acceptedOrigin returns the Origin of a request if it matches acceptOrigins, and "" otherwise.
func (f *proxyFilter) acceptedOrigin(header http.Header) string {
	if origins := header.Values("Origin"); len(origins) == 1 && matchesAny(f.compiled.acceptOrigins, origins[0]) {
		return origins[0]
	}
	return ""
}

// allowReading permits scripts of an accepted origin to read the response.
func (f *proxyFilter) allowReading(response, request http.Header) {
	if len(f.compiled.acceptOrigins) == 0 {
		return
	}
	response.Add("Vary", "Origin")
	if origin := f.acceptedOrigin(request); origin != "" {
		response.Set(allowOrigin, origin)
	}
}

// isPreflight reports whether r is a CORS preflight request of an accepted origin.
func (f *proxyFilter) isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get(requestMethod) != "" && f.acceptedOrigin(r.Header) != ""
}

// respondToPreflight permits accepted requests, with any headers.
func (f *proxyFilter) respondToPreflight(w http.ResponseWriter, r *http.Request, host string) {
	header := w.Header()
	method := r.Header.Get(requestMethod)
	header.Add("Vary", requestMethod+", "+requestHeaders)
	if !f.accepts(method, r.URL.Path, host) {
		http.Error(w, http.StatusText(http.StatusForbidden), http.StatusForbidden)
		return
	}
	header.Set("Access-Control-Allow-Methods", method)
	if names := r.Header.Values(requestHeaders); len(names) > 0 {
		header.Set("Access-Control-Allow-Headers", strings.Join(names, ", "))
	}
	w.WriteHeader(http.StatusNoContent)
}
