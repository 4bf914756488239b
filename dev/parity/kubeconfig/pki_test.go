package kubeconfig_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newPKI creates a certificate, its key, and another key. The replacer replaces <CERT>, <KEY> and <WRONGKEY> by their
// PEM, and <CERT64>, <KEY64> and <WRONGKEY64> by that in base64.
func newPKI(t *testing.T) *strings.Replacer {
	t.Helper()
	var files [3][]byte
	key := newKey(t)
	wrong := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	files[0] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	for i, key := range []*ecdsa.PrivateKey{key, wrong} {
		encoded, err := x509.MarshalECPrivateKey(key)
		require.NoError(t, err)
		files[i+1] = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
	}
	var pairs []string
	for i, name := range []string{"CERT", "KEY", "WRONGKEY"} {
		pairs = append(pairs, "<"+name+">", string(files[i]), "<"+name+"64>", base64.StdEncoding.EncodeToString(files[i]))
	}
	return strings.NewReplacer(pairs...)
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}
