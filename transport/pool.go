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

	"github.com/anykind/anykind/transport/internal/credential"
)

const (
	// maxHeader limits a response header of the server or a proxy: details belong into the body.
	maxHeader = 1 << 20
	// maxRetired limits the transports closed by closeIdle. Older transports close by themselves after IdleConnTimeout.
	maxRetired = 4
)

// pool holds the current http.Transport. Its connections present a single client certificate and trust a single set of
// authorities. When either is replaced, active requests end on their connections, and later requests get a new transport. It is
// safe for concurrent use.
type pool struct {
	template  *http.Transport
	authority *credential.File
	now       func() time.Time
	dialer    func(ctx context.Context, network, address string) (net.Conn, error)
	// open counts the unclosed connections, and the connections being dialed.
	open atomic.Int64

	mu          sync.Mutex
	authorities []byte // source of roots
	roots       *x509.CertPool
	current     *http.Transport
	certificate *tls.Certificate
	// retired are the previous transports. Their requests may still be active.
	retired []*http.Transport
}

func newPool(cfg *Config) (*pool, error) {
	proxy, err := proxyFunc(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Insecure && (len(cfg.CAData) > 0 || cfg.CAFile != "") {
		return nil, errors.New("a certificate authority and insecure-skip-tls-verify exclude each other (drop one)")
	}
	p := &pool{
		template: &http.Transport{
			Proxy: proxy,
			TLSClientConfig: &tls.Config{
				MinVersion:         tls.VersionTLS12,
				ServerName:         cfg.ServerName,
				InsecureSkipVerify: cfg.Insecure, //nolint:gosec // the user's own insecure-skip-tls-verify
			},
			TLSHandshakeTimeout:    10 * time.Second,
			MaxIdleConnsPerHost:    25,
			IdleConnTimeout:        90 * time.Second,
			DisableCompression:     cfg.DisableCompression,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: maxHeader,
			// A vanished peer is noticed after SendPingTimeout + PingTimeout, although reads have no time-out.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		},
		authority: credential.NewFile(cfg.CAData, cfg.CAFile),
		now:       time.Now,
		dialer:    cfg.Dial,
	}
	if p.dialer == nil {
		p.dialer = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	p.template.DialContext = p.dial
	_, err = p.transport(nil) // reports unreadable authorities before the first request
	return p, err
}

// transport returns a transport with the client certificate; nil means none.
func (p *pool) transport(certificate *tls.Certificate) (*http.Transport, error) {
	authorities, err := p.authority.Content(p.now())
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := p.current == nil || certificate != p.certificate
	if !bytes.Equal(authorities, p.authorities) {
		roots := x509.NewCertPool()
		switch {
		case roots.AppendCertsFromPEM(authorities):
			p.authorities = authorities
			p.roots = roots
			changed = true
		case p.roots == nil:
			return nil, errors.New("certificate authority: no PEM certificate in it")
		}
	}
	if changed {
		p.replace(certificate)
	}
	return p.current, nil
}

func (p *pool) replace(certificate *tls.Certificate) {
	if p.current != nil {
		p.retired = append(p.retired, p.current)
	}
	// Idle connections are closed now, active connections after IdleConnTimeout.
	for _, retired := range p.retired {
		retired.CloseIdleConnections()
	}
	p.retired = p.retired[max(0, len(p.retired)-maxRetired):]
	p.current = p.template.Clone()
	p.certificate = certificate
	p.current.TLSClientConfig.RootCAs = p.roots
	if certificate != nil {
		// Not Certificates: net/http withholds them if the server's list of authorities lacks the issuer. The server may still
		// accept the certificate, for example while authorities are replaced.
		p.current.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return certificate, nil
		}
	}
}

// http1 returns a copy of a transport with HTTP/1.1 only, for an upgrade. net/http selects HTTP/1.1 by itself only for websocket
// upgrades. For any different protocol it would use the server's preferred HTTP/2, where upgrades do not exist. The copy keeps no
// connection.
func http1(pooled *http.Transport) *http.Transport {
	transport := pooled.Clone()
	transport.DisableKeepAlives = true
	transport.ForceAttemptHTTP2 = false
	transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
	return transport
}

// closeIdle closes idle connections. It repeats that for a second, and while connections are open, with delays doubled up to a
// minute: the connection of a canceled request becomes idle a moment later, also if net/http has not dialed it yet.
func (p *pool) closeIdle() { p.closeIdleEvery(10 * time.Millisecond) }

func (p *pool) closeIdleEvery(delay time.Duration) {
	p.mu.Lock()
	transports := append(slices.Clone(p.retired), p.current)
	p.mu.Unlock()
	for _, transport := range transports {
		transport.CloseIdleConnections()
	}
	if (p.open.Load() > 0 || delay < time.Second) && delay < time.Minute {
		time.AfterFunc(delay, func() { p.closeIdleEvery(2 * delay) })
	}
}

func (p *pool) dial(ctx context.Context, network, address string) (net.Conn, error) {
	p.open.Add(1)
	conn, err := p.dialer(ctx, network, address)
	if err != nil {
		p.open.Add(-1)
		return nil, err
	}
	return &countedConn{Conn: conn, closed: sync.OnceFunc(func() { p.open.Add(-1) })}, nil
}

// countedConn is a connection counted in pool.open until it is closed.
type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

// proxyFunc returns an http.Transport's Proxy: the configured one, or the environment's unless cfg has a Dial.
func proxyFunc(cfg *Config) (func(*http.Request) (*url.URL, error), error) {
	proxy := cfg.ProxyURL.Reveal()
	switch {
	case proxy == "" && cfg.Dial != nil:
		return nil, nil //nolint:nilnil // no proxy
	case proxy == "":
		return http.ProxyFromEnvironment, nil
	}
	parsed, err := url.Parse(proxy)
	if err != nil || parsed.Host == "" {
		return nil, errors.New("proxy URL: invalid (it must look like http://host:port)")
	}
	if !slices.Contains([]string{"http", "https", "socks5"}, parsed.Scheme) {
		return nil, fmt.Errorf("proxy URL: scheme %q is not http, https or socks5", parsed.Scheme)
	}
	return http.ProxyURL(parsed), nil
}
