package restconfig

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/transport"
)

// FromConn returns a client-go config for requests over conn, with conn's credential, TLS settings, proxy, hooks and HTTP
// connections. This includes client-go's remotecommand, portforward, transport/spdy and transport/websocket, although they dial
// by themselves.
//
// QPS is negative: only conn's RateLimiter applies. Impersonate may be set and replaces the user impersonated by conn.
// Credentials, TLS options, Proxy and Dial must stay empty: conn determines them. rest.TLSConfigFor returns nil for the config,
// so programs cannot dial with it.
//
// client-go's user agent, warning handler and retries apply to its calls. conn's OnWarning is called in addition to the warning
// handler. Close conn after the last use of the config.
func FromConn(conn *transport.Conn) *rest.Config {
	own := &roundTripper{conn: conn}
	return &rest.Config{
		Host:      conn.Server(),
		Transport: own,
		QPS:       -1,
		WrapTransport: func(base http.RoundTripper) http.RoundTripper {
			switch base.(type) {
			case *roundTripper, *http.Transport:
				return own
			default:
				return &dialingRoundTripper{conn: own, base: base}
			}
		},
	}
}

// WithConn returns FromConn(conn) with settings of config that choose neither server nor credential: APIPath, content types,
// serializer, user agent, timeout and warning handlers. With [ToConn], both libraries then share a login:
//
//	conn, err := restconfig.ToConn(config)
//	…
//	config = restconfig.WithConn(config, conn)
//
// Warnings of requests with the new config go to its handlers only, and not to conn's OnWarning.
func WithConn(config *rest.Config, conn *transport.Conn) *rest.Config {
	own := FromConn(conn.WithOnWarning(nil))
	own.APIPath = config.APIPath
	own.ContentConfig = config.ContentConfig
	own.UserAgent = config.UserAgent
	own.Timeout = config.Timeout
	own.WarningHandler = config.WarningHandler
	own.WarningHandlerWithContext = config.WarningHandlerWithContext
	return own
}

// roundTripper sends requests over a connection. It translates client-go's impersonation headers to an impersonating
// connection.
type roundTripper struct{ conn *transport.Conn }

// RoundTrip implements http.RoundTripper.
func (r *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	conn, header, err := r.impersonate(req.Header)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	if conn == r.conn {
		response, err := conn.RoundTrip(req)
		return response, cause(err)
	}
	own := req.Clone(req.Context())
	own.Header = header
	response, err := conn.RoundTrip(own)
	if response != nil {
		response.Request = req
	}
	return response, cause(err)
}

// cause returns an error of transport.Conn without method and URL, which http.Client adds.
func cause(err error) error {
	if failed, ok := err.(interface{ As(target any) bool }); ok {
		var own *url.Error
		if failed.As(&own) {
			return own.Err
		}
	}
	return err
}

// CloseIdleConnections closes the connection's idle connections.
func (r *roundTripper) CloseIdleConnections() { r.conn.Close() }

// impersonate returns the connection for a request's header, and the header without impersonation fields.
func (r *roundTripper) impersonate(header http.Header) (*transport.Conn, http.Header, error) {
	var user transport.Impersonation
	var rest http.Header
	for name, values := range header {
		name := http.CanonicalHeaderKey(name)
		if !strings.HasPrefix(name, "Impersonate-") || len(values) == 0 {
			continue
		}
		if rest == nil {
			rest = header.Clone()
		}
		delete(rest, name)
		switch key, isExtra := strings.CutPrefix(name, "Impersonate-Extra-"); {
		case isExtra:
			if user.Extra == nil {
				user.Extra = map[string][]string{}
			}
			user.Extra[extraKey(key)] = values
		case name == "Impersonate-User":
			user.User = values[0]
		case name == "Impersonate-Uid":
			user.UID = values[0]
		case name == "Impersonate-Group":
			user.Groups = values
		}
	}
	if rest == nil {
		return r.conn, header, nil
	}
	conn, err := r.conn.Impersonate(user)
	return conn, rest, err
}

// extraKey decodes the key of an extra field from a header name, like the API server.
func extraKey(escaped string) string {
	key := strings.ToLower(escaped)
	if unescaped, err := url.PathUnescape(key); err == nil {
		return unescaped
	}
	return key
}
