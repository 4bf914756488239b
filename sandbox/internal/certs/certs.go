// Package certs creates the keys and certificates of a cluster.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// validity exceeds the life of any sandbox.
const validity = 365 * 24 * time.Hour

// Authority signs certificates. Safe for concurrent use.
type Authority struct {
	Pair
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority creates a self-signed certificate authority.
func NewAuthority(name string) (*Authority, error) {
	template, err := newTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	pair, certificate, err := sign(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("create certificate authority %q: %w", name, err)
	}
	return &Authority{Pair: *pair, certificate: certificate, key: key}, nil
}

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("choose serial number: %w", err)
	}
	// An hour earlier, in case a clock is late.
	start := time.Now().Add(-time.Hour)
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: start, NotAfter: start.Add(validity)}, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	return key, nil
}

func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (*Pair, *x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err := privateKeyPEM(key)
	if err != nil {
		return nil, nil, err
	}
	return &Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: keyPEM}, certificate, nil
}

// Pair is a certificate and its private key, both PEM.
type Pair struct {
	Cert []byte
	Key  []byte
}

// Write stores the pair as base.crt and base.key, readable by the user alone.
func (p *Pair) Write(base string) error {
	if err := os.WriteFile(base+".crt", p.Cert, 0o600); err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	if err := os.WriteFile(base+".key", p.Key, 0o600); err != nil {
		return fmt.Errorf("write private key: %w", err)
	}
	return nil
}

// Client issues a client certificate for a user of Kubernetes and its groups.
func (a *Authority) Client(user string, groups ...string) (*Pair, error) {
	return a.issue(pkix.Name{CommonName: user, Organization: groups}, x509.ExtKeyUsageClientAuth)
}

// Server issues a certificate for servers on loopback. Clients may use it, too: etcd's
// JSON gateway calls its own server with it.
func (a *Authority) Server(name string) (*Pair, error) {
	return a.issue(pkix.Name{CommonName: name}, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

func (a *Authority) issue(subject pkix.Name, usage ...x509.ExtKeyUsage) (*Pair, error) {
	template, err := newTemplate(subject)
	if err != nil {
		return nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = usage
	if usage[0] == x509.ExtKeyUsageServerAuth {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
		template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	pair, _, err := sign(template, a.certificate, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("issue certificate for %q: %w", subject.CommonName, err)
	}
	return pair, nil
}

// ServiceAccountKey creates the key pair for signing service account tokens, in PEM.
func ServiceAccountKey() (private, public []byte, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	private, err = privateKeyPEM(key)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, nil, fmt.Errorf("encode public key: %w", err)
	}
	return private, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

func privateKeyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
