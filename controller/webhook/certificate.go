package webhook

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// Certificate is the serving certificate of webhooks, read from files again after a change, for example of a mounted Secret. As an
// [http.Handler] it is a readiness probe: 200 with a current certificate, 503 with the reason otherwise. It is safe for concurrent use.
type Certificate struct {
	load func() (certPEM, keyPEM []byte, err error)

	mu       sync.Mutex
	loadedAt time.Time
	certPEM  []byte
	keyPEM   []byte
	current  *tls.Certificate
	err      error // of the last load
}

// reloadInterval is the minimum time between two reads of the files.
const reloadInterval = time.Second

// NewCertificate returns the certificate of two PEM files. The files may be missing until they are needed. They are read at a TLS
// handshake, at most once a second. A pair that cannot be read, or does not match yet, leaves the former certificate in use.
func NewCertificate(certFile, keyFile string) *Certificate {
	return &Certificate{load: func() (certPEM, keyPEM []byte, err error) {
		if certPEM, err = os.ReadFile(certFile); err == nil {
			keyPEM, err = os.ReadFile(keyFile)
		}
		return certPEM, keyPEM, err
	}}
}

// TLSConfig returns a configuration of a server with the certificate, for TLS 1.2 or later.
func (c *Certificate) TLSConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get() }}
}

// ServeHTTP is the readiness probe.
func (c *Certificate) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	current, err := c.get()
	if err == nil {
		if end := current.Leaf.NotAfter; time.Now().After(end) {
			err = fmt.Errorf("the serving certificate of the webhook expired at %s", end.UTC().Format(time.RFC3339))
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func (c *Certificate) get() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.loadedAt.IsZero() || now.Sub(c.loadedAt) >= reloadInterval {
		c.loadedAt = now
		c.err = c.reload()
	}
	if c.current == nil {
		return nil, fmt.Errorf("load the serving certificate of the webhook: %w", c.err)
	}
	return c.current, nil
}

func (c *Certificate) reload() error {
	certPEM, keyPEM, err := c.load()
	if err != nil || bytes.Equal(certPEM, c.certPEM) && bytes.Equal(keyPEM, c.keyPEM) {
		return err
	}
	loaded, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return err
	}
	c.certPEM = certPEM
	c.keyPEM = keyPEM
	c.current = &loaded
	return nil
}
