package certs

import (
	"crypto/ecdsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"os"
)

// Pair is a certificate and its private key, both PEM.
type Pair struct {
	Cert []byte
	Key  []byte
}

// Write stores the pair as base.crt and base.key, readable by the user alone.
func (p *Pair) Write(base string) error {
	if err := os.WriteFile(base+".crt", p.Cert, 0o600); err != nil {
		return fmt.Errorf("writing a certificate: %w", err)
	}
	if err := os.WriteFile(base+".key", p.Key, 0o600); err != nil {
		return fmt.Errorf("writing a private key: %w", err)
	}
	return nil
}

// Client issues a client certificate: to Kubernetes, user is the user's name and
// groups the groups it belongs to.
func (a *Authority) Client(user string, groups ...string) (*Pair, error) {
	return a.issue(pkix.Name{CommonName: user, Organization: groups}, x509.ExtKeyUsageClientAuth)
}

// Server issues a certificate for servers on loopback. It is good for clients as
// well: etcd's JSON gateway calls its own server with it.
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
		return nil, fmt.Errorf("issuing a certificate for %q: %w", subject.CommonName, err)
	}
	return pair, nil
}

// ServiceAccountKey makes the key pair that signs service account tokens, PEM.
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
		return nil, nil, fmt.Errorf("encoding a public key: %w", err)
	}
	return private, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

func privateKeyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
