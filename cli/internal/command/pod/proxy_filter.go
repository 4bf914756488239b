package pod

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
)

// proxyFilter is the request filter of the proxy. Each string is a comma-separated list of regular expressions.
type proxyFilter struct {
	acceptPaths, rejectPaths, acceptHosts, rejectMethods, acceptOrigins string

	compiled struct{ acceptPaths, rejectPaths, acceptHosts, rejectMethods, acceptOrigins []*regexp.Regexp }
}

// defaultProxyFilter returns the filter of kubectl proxy. The Host of a request must be localhost: a web site cannot point its
// own name to this machine (DNS rebinding). Unlike kubectl's, the filter also rejects requests of web sites for localhost.
func defaultProxyFilter() proxyFilter {
	return proxyFilter{
		acceptPaths: `^.*`, rejectPaths: `^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach`,
		acceptHosts: `^localhost$,^127\.0\.0\.1$,^\[::1\]$`, rejectMethods: `^$`,
	}
}

func (f *proxyFilter) compile() error {
	for _, list := range []struct {
		flag, text string
		into       *[]*regexp.Regexp
	}{
		{"accept-paths", f.acceptPaths, &f.compiled.acceptPaths}, {"reject-paths", f.rejectPaths, &f.compiled.rejectPaths},
		{"accept-hosts", f.acceptHosts, &f.compiled.acceptHosts}, {"reject-methods", f.rejectMethods, &f.compiled.rejectMethods},
		{"accept-origins", f.acceptOrigins, &f.compiled.acceptOrigins},
	} {
		*list.into = nil
		if list.text == "" {
			continue
		}
		for part := range strings.SplitSeq(list.text, ",") {
			expression, err := regexp.Compile(part)
			if err != nil {
				return fmt.Errorf("--%s: %w", list.flag, err)
			}
			*list.into = append(*list.into, expression)
		}
	}
	return nil
}

// accepts reports whether method, path and host pass the filter.
func (f *proxyFilter) accepts(method, path, host string) bool {
	return !matchesAny(f.compiled.rejectPaths, path) && !matchesAny(f.compiled.rejectMethods, method) &&
		matchesAny(f.compiled.acceptPaths, path) && matchesAny(f.compiled.acceptHosts, host)
}

// acceptsOrigin reports whether the headers exclude a browser's request for a page of a foreign origin. Pages of the proxy itself
// and of acceptOrigins are accepted.
//
// A browser adds Origin to upgrades, to POST and to each request with a response for a script of a foreign origin. It adds
// Sec-Fetch-Site to all requests: images and links have no Origin. Few programs other than browsers send either header. Python's
// websocket-client sends the proxy's own address as Origin, and golang.org/x/net/websocket the Origin of its caller.
func (f *proxyFilter) acceptsOrigin(host string, header http.Header) bool {
	origins := header.Values("Origin")
	named := len(origins) > 0
	for _, origin := range origins {
		if matchesAny(f.compiled.acceptOrigins, origin) {
			continue
		}
		named = false
		scheme, originHost, _ := strings.Cut(origin, "://")
		if scheme != "http" && scheme != "https" || !strings.EqualFold(originHost, host) {
			return false
		}
	}
	if named {
		return true
	}
	for _, site := range header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" {
			return false
		}
	}
	return true
}

func matchesAny(expressions []*regexp.Regexp, text string) bool {
	for _, expression := range expressions {
		if expression.MatchString(text) {
			return true
		}
	}
	return false
}

// wrap returns a handler for accepted requests. Rejected requests get 403 Forbidden.
func (f *proxyFilter) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			if host = name; strings.Contains(name, ":") {
				host = "[" + name + "]"
			}
		}
		if !f.accepts(r.Method, r.URL.Path, host) {
			http.Error(w, http.StatusText(http.StatusForbidden), http.StatusForbidden)
			return
		}
		if !f.acceptsOrigin(r.Host, r.Header) {
			http.Error(w, "the request of a page of another origin is not accepted (see --accept-origins)", http.StatusForbidden)
			return
		}
		f.allowReading(w.Header(), r.Header)
		if f.isPreflight(r) {
			f.respondToPreflight(w, r, host)
			return
		}
		next.ServeHTTP(w, r)
	})
}
