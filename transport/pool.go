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
	// maxHeader bounds a response's header, the server's or a proxy's: details belong into its body.
	maxHeader = 1 << 20
	// maxRetired bounds the transports that closeIdle still closes; older ones close by themselves after IdleConnTimeout.
	maxRetired = 4
)

// pool holds one http.Transport, whose connections present one client certificate and trust one set of authorities. When
// either is replaced, requests under way end on the connections that they have, and later ones get a new transport. It is
// safe for concurrent use.
type pool struct {
	template  *http.Transport
	authority *credential.File
	now       func() time.Time
	// open counts the connections that are not closed.
	open atomic.Int64

	mu          sync.Mutex
	authorities []byte // that roots was made of
	roots       *x509.CertPool
	current     *http.Transport
	certificate *tls.Certificate
	// retired are the previous transports, whose requests may not have ended.
	retired []*http.Transport
}

func newPool(cfg *Config) (*pool, error) {
	proxy, err := proxyFunc(cfg.ProxyURL.Reveal())
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
			// A connection whose peer vanished is noticed after the sum of the two, though no read has a time-out.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		},
		authority: credential.NewFile(cfg.CAData, cfg.CAFile),
		now:       time.Now,
	}
	p.template.DialContext = p.dial
	_, err = p.transport(nil) // reports unreadable authorities before the first request
	return p, err
}

// transport returns the transport whose connections present the certificate, nil for none.
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
			p.authorities, p.roots, changed = authorities, roots, true
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
	// Connections that are idle by now are closed, the others after IdleConnTimeout.
	for _, retired := range p.retired {
		retired.CloseIdleConnections()
	}
	p.retired = p.retired[max(0, len(p.retired)-maxRetired):]
	p.current, p.certificate = p.template.Clone(), certificate
	p.current.TLSClientConfig.RootCAs = p.roots
	if certificate != nil {
		// Not Certificates: those are withheld if the server's list of authorities lacks the issuer, but the server may accept
		// the certificate all the same, while authorities are replaced for example.
		p.current.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return certificate, nil
		}
	}
}

// http1 returns a transport like one of the pool's that speaks HTTP/1.1 only, for one upgrade: net/http itself sends those to
// websocket over HTTP/1.1, and all others over the HTTP/2 that the server prefers, which has none. It keeps no connection.
func http1(pooled *http.Transport) *http.Transport {
	transport := pooled.Clone()
	transport.DisableKeepAlives, transport.ForceAttemptHTTP2 = true, false
	transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
	return transport
}

// closeIdle closes idle connections, and for a while those that become idle later: a connection whose request has just been
// canceled does so a moment later.
func (p *pool) closeIdle() { p.closeIdleEvery(10 * time.Millisecond) }

func (p *pool) closeIdleEvery(delay time.Duration) {
	p.mu.Lock()
	transports := append(slices.Clone(p.retired), p.current)
	p.mu.Unlock()
	for _, transport := range transports {
		transport.CloseIdleConnections()
	}
	if p.open.Load() > 0 && delay < time.Minute {
		time.AfterFunc(delay, func() { p.closeIdleEvery(2 * delay) })
	}
}

func (p *pool) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	p.open.Add(1)
	return &countedConn{Conn: conn, closed: sync.OnceFunc(func() { p.open.Add(-1) })}, nil
}

// countedConn is a connection that counts until it is closed.
type countedConn struct {
	net.Conn
	closed func()
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

// proxyFunc returns an http.Transport's Proxy: the configured one, or the environment's.
func proxyFunc(proxy string) (func(*http.Request) (*url.URL, error), error) {
	if proxy == "" {
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
