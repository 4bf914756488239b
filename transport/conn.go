package transport

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"strings"
)

// Conn makes requests to one API server. It is safe for concurrent use, and its requests share connections.
type Conn struct {
	base     *url.URL
	http     *http.Client
	options  Options
	warnings heard
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
	base.Path, base.RawPath = strings.TrimRight(base.Path, "/"), ""
	return base, nil
}

// withoutSecrets cuts a URL's user and query off, also where it cannot be parsed.
func withoutSecrets(raw string) string {
	raw, _, _ = strings.Cut(raw, "?")
	if at := strings.LastIndex(raw, "@"); at >= 0 {
		return "…" + raw[at:]
	}
	return raw
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
