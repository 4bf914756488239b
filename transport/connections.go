package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// connections holds the pools of open connections, one for each certificate that the client shows and each set of
// authorities that it trusts: when either is renewed, requests under way end on the connections that they have, and
// later ones get new connections. It is safe for concurrent use.
type connections struct {
	template  *http.Transport
	authority *renewedFile
	now       func() time.Time
	// open counts the connections that are not closed.
	open atomic.Int64

	mu      sync.Mutex
	roots   []byte // that pool was made of
	pool    *x509.CertPool
	current *http.Transport
	shown   *tls.Certificate
	// retired are the pools before, whose requests may not have ended.
	retired []*http.Transport
}

func newConnections(cfg *Config) (*connections, error) {
	proxy, err := proxyFunc(cfg.ProxyURL)
	if err != nil {
		return nil, err
	}
	c := &connections{
		template: &http.Transport{
			Proxy: proxy,
			TLSClientConfig: &tls.Config{
				MinVersion:         tls.VersionTLS12,
				ServerName:         cfg.ServerName,
				InsecureSkipVerify: cfg.Insecure, //nolint:gosec // the user's own insecure-skip-tls-verify
			},
			TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: 25,
			IdleConnTimeout:     90 * time.Second,
			DisableCompression:  cfg.DisableCompression,
			ForceAttemptHTTP2:   true,
			// Of a Status's size: what explains an answer stands in its body.
			MaxResponseHeaderBytes: maxHeader,
			// A connection whose peer vanished is noticed after the two together, though no read has a time-out.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		},
		authority: inlineOrFile(cfg.CAData, cfg.CAFile),
		now:       time.Now,
	}
	c.template.DialContext = c.dial
	if cfg.Insecure && (len(cfg.CAData) > 0 || cfg.CAFile != "") {
		return nil, errors.New("a certificate authority and insecure-skip-tls-verify exclude each other: drop one")
	}
	// Authorities that cannot be read are found out here, not with the first request.
	_, err = c.showing(nil)
	return c, err
}

// showing is the pool whose connections show the certificate, nil for none.
func (c *connections) showing(certificate *tls.Certificate) (*http.Transport, error) {
	roots, err := c.authority.content(c.now())
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.current == nil || certificate != c.shown
	if !bytes.Equal(roots, c.roots) {
		pool := x509.NewCertPool()
		switch {
		case pool.AppendCertsFromPEM(roots):
			c.roots, c.pool, changed = roots, pool, true
		case c.pool == nil:
			return nil, errors.New("certificate authority: no PEM certificate in it")
		}
	}
	if changed {
		c.replace(certificate)
	}
	return c.current, nil
}

func (c *connections) replace(certificate *tls.Certificate) {
	if c.current != nil {
		c.retired = append(c.retired, c.current)
	}
	// What has ended since the last replacement is closed now, the rest when it has been idle for long enough.
	for _, retired := range c.retired {
		retired.CloseIdleConnections()
	}
	c.retired = c.retired[max(0, len(c.retired)-maxRetired):]
	c.current, c.shown = c.template.Clone(), certificate
	c.current.TLSClientConfig.RootCAs = c.pool
	if certificate != nil {
		// Not Certificates: those are withheld if the server's list of authorities lacks the issuer, which it may though the
		// server accepts the certificate, while authorities are replaced for example.
		c.current.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return certificate, nil
		}
	}
}

// maxHeader bounds what is read of an answer's header, the server's or a proxy's.
const maxHeader = 1 << 20

// maxRetired is how many pools closeIdle still reaches; older ones close by themselves after IdleConnTimeout.
const maxRetired = 4

// closeIdle closes what is idle, and for a while what becomes idle after it: a connection whose request has just been
// canceled is so a moment later.
func (c *connections) closeIdle() { c.closeIdleAgain(10 * time.Millisecond) }

func (c *connections) closeIdleAgain(wait time.Duration) {
	c.mu.Lock()
	pools := append(slices.Clone(c.retired), c.current)
	c.mu.Unlock()
	for _, pool := range pools {
		pool.CloseIdleConnections()
	}
	if c.open.Load() > 0 && wait < time.Minute {
		time.AfterFunc(wait, func() { c.closeIdleAgain(2 * wait) })
	}
}

// dial opens a connection and counts it.
func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.open.Add(1)
	return &counted{Conn: conn, open: &c.open}, nil
}

// counted is a connection that is taken off the count when it is closed.
type counted struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// proxyFunc is how http.Transport picks a proxy: the one asked for, else the environment's.
func proxyFunc(proxy string) (func(*http.Request) (*url.URL, error), error) {
	if proxy == "" {
		return http.ProxyFromEnvironment, nil
	}
	parsed, err := url.Parse(proxy)
	if err != nil || parsed.Host == "" {
		return nil, errors.New("the proxy URL cannot be read: it must look like http://host:port")
	}
	switch parsed.Scheme {
	case "http", "https", "socks5":
		return http.ProxyURL(parsed), nil
	default:
		return nil, fmt.Errorf("the proxy URL's scheme %q is not http, https or socks5", parsed.Scheme)
	}
}
