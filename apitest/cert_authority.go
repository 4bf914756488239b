package apitest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"sync"
	"time"
)

// certAuthority is a certificate authority with its server certificate.
type certAuthority struct {
	ca     *x509.Certificate
	caPEM  []byte
	key    *ecdsa.PrivateKey
	server tls.Certificate
}

// sharedAuthority returns the authority of all servers of the process. It is created once, because a server must be ready within
// a millisecond.
var sharedAuthority = sync.OnceValues(newAuthority)

// The certificates are also valid in a testing/synctest bubble: its clock begins in the year 2000.
var (
	notBefore = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	notAfter  = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

func newAuthority() (*certAuthority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "apitest"}, NotBefore: notBefore, NotAfter: notAfter,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	id := &certAuthority{ca: ca, caPEM: encodePEM("CERTIFICATE", der), key: key}
	certPEM, keyPEM, err := id.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-apiserver"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	})
	if err != nil {
		return nil, err
	}
	id.server, err = tls.X509KeyPair(certPEM, keyPEM)
	return id, err
}

// sign returns a certificate signed by the authority, and its key, in PEM.
func (id *certAuthority) sign(template *x509.Certificate) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = notBefore
	template.NotAfter = notAfter
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, id.ca, key.Public(), id.key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return encodePEM("CERTIFICATE", der), encodePEM("PRIVATE KEY", keyDER), nil
}

func (id *certAuthority) serverConfig() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(id.ca)
	return &tls.Config{
		Certificates: []tls.Certificate{id.server}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool,
	}
}

func encodePEM(kind string, der []byte) []byte {
	var buffer bytes.Buffer
	_ = pem.Encode(&buffer, &pem.Block{Type: kind, Bytes: der})
	return buffer.Bytes()
}
