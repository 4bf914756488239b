// Package certs makes the keys and certificates of one sandbox. They live as
// long as the sandbox's folder.
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
	"time"
)

// validity is how long certificates hold; nobody keeps a sandbox that long.
const validity = 365 * 24 * time.Hour

// Authority signs certificates. Safe for concurrent use.
type Authority struct {
	Pair
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes a self-signed certificate authority.
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
		return nil, fmt.Errorf("making certificate authority %q: %w", name, err)
	}
	return &Authority{Pair: *pair, certificate: certificate, key: key}, nil
}

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	// An hour back, for clocks that were just set.
	start := time.Now().Add(-time.Hour)
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: start, NotAfter: start.Add(validity)}, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
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
