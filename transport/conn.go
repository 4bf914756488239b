package transport

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/anykind/anykind/internal/sanitize"
	"github.com/anykind/anykind/transport/internal/credential"
)

// Conn sends requests to an API server. It is safe for concurrent use, and its requests share connections.
type Conn struct {
	base     *url.URL
	http     *http.Client
	options  Options
	warnings *warningSet
	// authenticator is nil if the HTTP client authenticates by itself.
	authenticator credential.Authenticator
	check         *credentialCheck
	impersonate   http.Header
	closeIdle     func()
}

// New returns a Conn for a server's URL and an HTTP client. The client must authenticate by itself, like the client of
// client-go's rest.HTTPClientFor. It is copied. Redirects are followed only to the server's own host: no credential is sent to a
// different host. A nil client means a plain http.Client; nil opts mean defaults.
func New(server string, client *http.Client, opts *Options) (*Conn, error) {
	base, err := parseServer(server)
	if err != nil {
		return nil, err
	}
	own := http.Client{}
	if client != nil {
		own = *client
	}
	if own.Transport == nil {
		own.Transport = http.DefaultTransport
	}
	own.CheckRedirect = credential.CheckRedirect
	unwrapped := own // a wrapper need not close idle connections
	conn := &Conn{base: base, http: &own, warnings: &warningSet{}, check: &credentialCheck{running: make(chan struct{}, 1)}, closeIdle: unwrapped.CloseIdleConnections}
	if opts != nil {
		conn.options = *opts
	}
	if conn.options.UserAgent == "" {
		conn.options.UserAgent = defaultUserAgent()
	}
	conn.options.Namespace = cmp.Or(conn.options.Namespace, "default")
	if wrap := conn.options.WrapTransport; wrap != nil {
		own.Transport = wrap(own.Transport)
	}
	return conn, nil
}

// Open returns a Conn for the server of cfg. It reads and validates the files named by cfg. The first request dials, and runs the
// exec plugin if cfg has a plugin. Call [Conn.Close] when done.
func Open(cfg *Config) (*Conn, error) {
	if cfg == nil {
		return nil, errors.New("open a connection: the config is nil (transport.Load finds one)")
	}
	authenticator, err := newAuthenticator(cfg)
	if err != nil {
		return nil, fmt.Errorf("open a connection to %s: %w", sanitize.URL(cfg.Server), err)
	}
	pool, err := newPool(cfg)
	if err != nil {
		return nil, fmt.Errorf("open a connection to %s: %w", sanitize.URL(cfg.Server), err)
	}
	conn, err := New(cfg.Server, &http.Client{Transport: pool}, &cfg.Options)
	if err != nil {
		return nil, err
	}
	conn.authenticator = authenticator
	conn.closeIdle = pool.closeIdle
	conn.impersonate = impersonationHeader(cfg.Impersonate)
	return conn, nil
}

// parseServer parses and validates the server's URL. Its errors show no password and no query.
func parseServer(server string) (*url.URL, error) {
	base, err := url.Parse(server)
	switch {
	case err != nil, base.Scheme != "https" && base.Scheme != "http", base.Host == "":
		return nil, fmt.Errorf("server URL %q: invalid (it must look like https://host:port)", sanitize.URL(server))
	case base.User != nil:
		return nil, fmt.Errorf("server URL %s: it has a user (use Config.Username and Password)", sanitize.URL(server))
	case base.RawQuery != "" || base.ForceQuery || base.Fragment != "":
		return nil, fmt.Errorf("server URL %s: it has a query or a fragment (leave them out)", sanitize.URL(server))
	}
	// %2F stays as it is: an escaped slash is not a separator.
	base.RawPath = strings.TrimRight(base.EscapedPath(), "/")
	if base.Path, err = url.PathUnescape(base.RawPath); err != nil {
		return nil, fmt.Errorf("server URL %q: invalid escape in its path", sanitize.URL(server))
	}
	return base, nil
}

// Server returns the server's URL without a trailing slash.
func (c *Conn) Server() string { return c.base.String() }

// Namespace returns the default namespace of namespaced resources, never "".
func (c *Conn) Namespace() string { return c.options.Namespace }

// MemoryLimits returns the limits as set in [Options].
func (c *Conn) MemoryLimits() MemoryLimits { return c.options.MemoryLimits }

// UsesProtobuf returns Protobuf as set in [Options].
func (c *Conn) UsesProtobuf() bool { return c.options.Protobuf }

// Close closes idle connections. Requests in flight continue until they end by themselves. Close of a Conn made from another, by
// [Conn.Impersonate] or [Conn.WithOnWarning], does nothing: the connections are those of the other.
func (c *Conn) Close() { c.closeIdle() }

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
