package pod

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
)

// proxyFilter decides which requests the proxy passes on. Each text has regular expressions, separated by commas.
type proxyFilter struct {
	acceptPaths, rejectPaths, acceptHosts, rejectMethods string

	compiled struct{ acceptPaths, rejectPaths, acceptHosts, rejectMethods []*regexp.Regexp }
}

// defaultProxyFilter returns the filter of kubectl proxy. Only requests for localhost are accepted, which keeps web sites that a
// browser on this machine shows from reaching the API under a name of theirs.
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

// accepts reports whether a request is passed on.
func (f *proxyFilter) accepts(method, path, host string) bool {
	return !matchesAny(f.compiled.rejectPaths, path) && !matchesAny(f.compiled.rejectMethods, method) &&
		matchesAny(f.compiled.acceptPaths, path) && matchesAny(f.compiled.acceptHosts, host)
}

func matchesAny(expressions []*regexp.Regexp, text string) bool {
	for _, expression := range expressions {
		if expression.MatchString(text) {
			return true
		}
	}
	return false
}

// wrap returns a handler that passes on what the filter accepts and rejects the rest with 403.
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
		next.ServeHTTP(w, r)
	})
}
