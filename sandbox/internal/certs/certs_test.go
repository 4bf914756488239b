package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	authority, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func parse(t *testing.T, pair *Pair) *x509.Certificate {
	t.Helper()
	if _, err := tls.X509KeyPair(pair.Cert, pair.Key); err != nil {
		t.Fatalf("certificate and key do not belong together: %v", err)
	}
	block, _ := pem.Decode(pair.Cert)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func pool(a *Authority) *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.Cert)
	return roots
}

func TestAuthority_Client(t *testing.T) {
	authority := newAuthority(t)
	pair, err := authority.Client("jane", "team-a", "team-b")
	if err != nil {
		t.Fatal(err)
	}
	certificate := parse(t, pair)
	if got := certificate.Subject; got.CommonName != "jane" || len(got.Organization) != 2 {
		t.Errorf("subject %v, want user jane in two groups", got)
	}
	options := x509.VerifyOptions{Roots: pool(authority), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := certificate.Verify(options); err != nil {
		t.Errorf("its own authority does not accept it: %v", err)
	}
	options.Roots = pool(newAuthority(t))
	if _, err := certificate.Verify(options); err == nil {
		t.Error("another authority accepts it")
	}
	options = x509.VerifyOptions{Roots: pool(authority), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if _, err := certificate.Verify(options); err == nil {
		t.Error("a client's certificate is good for a server")
	}
}

func TestAuthority_ServerIsForLoopback(t *testing.T) {
	pair, err := newAuthority(t).Server("api")
	if err != nil {
		t.Fatal(err)
	}
	certificate := parse(t, pair)
	for _, name := range []string{"127.0.0.1", "::1", "localhost"} {
		if err := certificate.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"192.0.2.1", "example.org"} {
		if certificate.VerifyHostname(name) == nil {
			t.Errorf("it is good for %s", name)
		}
	}
	for _, ip := range certificate.IPAddresses {
		if !ip.IsLoopback() {
			t.Errorf("it names %s", ip)
		}
	}
}

func TestAuthority_Validity(t *testing.T) {
	certificate := parse(t, &newAuthority(t).Pair)
	now := time.Now()
	if !certificate.NotBefore.Before(now.Add(-30*time.Minute)) || !certificate.NotAfter.After(now.AddDate(0, 11, 0)) {
		t.Errorf("valid from %s to %s", certificate.NotBefore, certificate.NotAfter)
	}
}

func TestPair_WriteIsPrivate(t *testing.T) {
	base := filepath.Join(t.TempDir(), "pair")
	if err := newAuthority(t).Write(base); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{base + ".crt", base + ".key"} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", filepath.Base(path), info.Mode().Perm())
		}
	}
}

func TestServiceAccountKey(t *testing.T) {
	private, public, err := ServiceAccountKey()
	if err != nil {
		t.Fatal(err)
	}
	privateBlock, _ := pem.Decode(private)
	key, err := x509.ParseECPrivateKey(privateBlock.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	publicBlock, _ := pem.Decode(public)
	other, err := x509.ParsePKIXPublicKey(publicBlock.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if !key.PublicKey.Equal(other) {
		t.Error("the public key is not the private key's")
	}
}
