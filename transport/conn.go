package transport

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/anykind/anykind/internal/sanitize"
)

// Conn makes requests to one API server. It is safe for concurrent use, and its requests share connections.
type Conn struct {
	base     *url.URL
	http     *http.Client
	options  Options
	warnings warningSet
	checks   credentialChecks
	// who and authorize are nil where the HTTP client authenticates by itself.
	who       authenticator
	authorize *authorizing
	closeIdle func()
}

// New makes a Conn of a server's URL and an HTTP client that already authenticates, as client-go's
// rest.HTTPClientFor gives one. The client is copied; redirects are followed on the server's own host only, so that
// no credential reaches another. A nil client means a plain one, nil opts mean defaults.
func New(server string, client *http.Client, opts *Options) (*Conn, error) {
	base, err := parseServer(server)
	if err != nil {
		return nil, err
	}
	own := http.Client{}
	if client != nil {
		own = *client
	}
	own.CheckRedirect = sameHostOnly
	conn := &Conn{base: base, http: &own, closeIdle: own.CloseIdleConnections}
	if opts != nil {
		conn.options = *opts
	}
	if conn.options.UserAgent == "" {
		conn.options.UserAgent = defaultUserAgent()
	}
	if conn.options.Namespace == "" {
		conn.options.Namespace = "default"
	}
	if wrap := conn.options.Wrap; wrap != nil {
		inner := own.Transport
		if inner == nil {
			inner = http.DefaultTransport
		}
		own.Transport = wrap(inner)
	}
	return conn, nil
}

// parseServer checks the server's URL. Its errors show no password and no query.
func parseServer(server string) (*url.URL, error) {
	base, err := url.Parse(server)
	switch {
	case err != nil, base.Scheme != "https" && base.Scheme != "http", base.Host == "":
		return nil, fmt.Errorf("the server's URL %q cannot be used: it must look like https://host:port", withoutSecrets(server))
	case base.User != nil:
		return nil, fmt.Errorf("the server's URL %s holds a user: give it as Config.Username and Password", withoutSecrets(server))
	case base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf("the server's URL %s has a query or a fragment: leave them out", withoutSecrets(server))
	}
	// An escaped slash is no separator: %2F stays as it is.
	base.RawPath = strings.TrimRight(base.EscapedPath(), "/")
	if base.Path, err = url.PathUnescape(base.RawPath); err != nil {
		return nil, fmt.Errorf("the server's URL %q cannot be used: its path is escaped wrongly", withoutSecrets(server))
	}
	return base, nil
}

// withoutSecrets returns a URL for an error or a log, without its user, password, query and fragment, also if it cannot
// be parsed. A password may hold a character that ends the host's part of a URL: then only the scheme is shown.
func withoutSecrets(raw string) string {
	at, query := strings.LastIndex(raw, "@"), strings.IndexAny(raw, "?#")
	switch {
	case at >= 0 && query >= 0 && query < at:
		scheme, _, _ := strings.Cut(raw, "://")
		return sanitize.Text(strings.ToLower(scheme[:schemeLength(scheme)]), maxWord) + "://…"
	case query >= 0:
		raw = raw[:query]
	}
	if at >= 0 {
		return "…" + sanitize.Text(raw[at:], maxWord)
	}
	return sanitize.Text(raw, maxWord)
}

// schemeLength returns how long the scheme is at the beginning of a URL, 0 if there is none that this package knows.
func schemeLength(raw string) int {
	for _, scheme := range []string{"https", "http", "socks5"} {
		if strings.EqualFold(raw, scheme) {
			return len(scheme)
		}
	}
	return 0
}

// Server is the server's URL, without a slash at its end.
func (c *Conn) Server() string { return c.base.String() }

// Namespace is the default namespace of namespaced resources, never "".
func (c *Conn) Namespace() string { return c.options.Namespace }

// Close closes idle connections. Requests under way go on until they end by themselves.
func (c *Conn) Close() { c.closeIdle() }

// sameHostOnly lets a redirect be followed only where the credentials already go.
func sameHostOnly(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return fmt.Errorf("the server redirects to another host, %s://%s, where credentials must not go: "+
			"give that one as the server's URL if it is the right one", req.URL.Scheme, req.URL.Host)
	}
	if len(via) >= 10 {
		return fmt.Errorf("the server redirects in a circle: stopped after 10 redirects")
	}
	return nil
}

func defaultUserAgent() string {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range append(info.Deps, &info.Main) {
			if module.Path == "github.com/anykind/anykind" && strings.HasPrefix(module.Version, "v") {
				version = module.Version
			}
		}
	}
	return fmt.Sprintf("anykind/%s (%s/%s)", version, runtime.GOOS, runtime.GOARCH)
}
