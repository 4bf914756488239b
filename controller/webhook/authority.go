package webhook

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"slices"
	"time"
)

const (
	authorityValidity = 10 * 365 * 24 * time.Hour
	defaultValidity   = 90 * 24 * time.Hour
)

// keyPair is the data of a Secret, in PEM. authorities has the trusted certificates, first the certificate of authorityKey.
type keyPair struct {
	authorities  []byte
	authorityKey []byte
	certificate  []byte
	key          []byte
}

// isDue reports that two thirds of a certificate's validity have passed.
func isDue(c *x509.Certificate, now time.Time) bool {
	return now.After(c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) * 2 / 3))
}

// authority returns the certificate and the key that sign, or an error if they must be replaced.
func (p *keyPair) authority() (tls.Certificate, error) {
	pair, err := tls.X509KeyPair(p.authorities, p.authorityKey)
	if err == nil && (!pair.Leaf.IsCA || isDue(pair.Leaf, time.Now())) {
		err = errors.New("the CA certificate is due")
	}
	return pair, err
}

// renewAuthority replaces the authority. The former authorities stay trusted until they expire.
func (p *keyPair) renewAuthority() error {
	template := newTemplate("anykind-webhook-ca", authorityValidity)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	certificate, key, err := sign(template, nil)
	if err != nil {
		return err
	}
	for _, former := range parseAll(p.authorities) {
		if time.Now().Before(former.NotAfter) {
			certificate = append(certificate, encode("CERTIFICATE", former.Raw)...)
		}
	}
	p.authorities = certificate
	p.authorityKey = key
	return nil
}

// isServing reports whether the serving certificate is signed by the authority, is for the names, and is not due.
func (p *keyPair) isServing(authority *x509.Certificate, names []string) bool {
	pair, err := tls.X509KeyPair(p.certificate, p.key)
	return err == nil && !isDue(pair.Leaf, time.Now()) && p.isSigned(authority) && hasNames(pair.Leaf, names)
}

// isSigned reports whether the serving certificate is signed by the authority.
func (p *keyPair) isSigned(authority *x509.Certificate) bool {
	pair, err := tls.X509KeyPair(p.certificate, p.key)
	return err == nil && pair.Leaf.CheckSignatureFrom(authority) == nil
}

// isUsable reports whether the serving certificate is valid for the names and signed by any of the authorities.
func (p *keyPair) isUsable(names []string) bool {
	pair, err := tls.X509KeyPair(p.certificate, p.key)
	if err != nil || time.Now().After(pair.Leaf.NotAfter) || !slices.ContainsFunc(parseAll(p.authorities), p.isSigned) {
		return false
	}
	return hasNames(pair.Leaf, names)
}

func hasNames(certificate *x509.Certificate, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return certificate.VerifyHostname(name) != nil })
}

func (p *keyPair) renewServing(authority tls.Certificate, names []string, validity time.Duration) (err error) {
	template := newTemplate(names[0], validity)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	p.certificate, p.key, err = sign(template, &authority)
	return err
}

func newTemplate(name string, validity time.Duration) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes([]byte(rand.Text())[:16]), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-5 * time.Minute), NotAfter: now.Add(validity), // clocks may differ
	}
}

// sign returns a certificate and its new key in PEM. It is self-signed without a parent.
func sign(template *x509.Certificate, parent *tls.Certificate) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	issuer := template
	var signer any = private
	if parent != nil {
		issuer = parent.Leaf
		signer = parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, private.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// parseAll returns the valid certificates of PEM data.
func parseAll(data []byte) (all []*x509.Certificate) {
	for rest := bytes.TrimSpace(data); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return all
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, certificate)
		}
	}
}
