// Package credentials has fixtures for tests of authentication: certificates, a clock, an exec plugin and an OpenID Connect
// issuer.
package credentials

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Planted is part of every secret in tests. It must not occur in any error, log or formatted value.
const Planted = "s3cret-PLANTED"

// NewCertificate returns a self-signed certificate and its key, PEM-encoded. It serves as client certificate for name, as
// server certificate for 127.0.0.1, and as CA certificate.
func NewCertificate(t testing.TB, name string, expires time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: expires, IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

// Clock is a clock that a test advances.
type Clock struct{ nanoseconds atomic.Int64 }

// NewClock returns a clock that starts now.
func NewClock() *Clock {
	c := &Clock{}
	c.nanoseconds.Store(time.Now().UnixNano())
	return c
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time { return time.Unix(0, c.nanoseconds.Load()) }

// Advance advances the clock.
func (c *Clock) Advance(d time.Duration) { c.nanoseconds.Add(int64(d)) }
