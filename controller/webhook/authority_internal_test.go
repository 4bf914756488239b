package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestKeyPair_RenewsBeforeExpiry passes eight years in steps of a month, with a renewal as by an Issuer.
func TestKeyPair_RenewsBeforeExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const month = 30 * 24 * time.Hour
		names := []string{"webhook.shop.svc", "127.0.0.1"}
		pair := &keyPair{}
		authorities := 0
		certificates := 0
		for range 100 {
			before := *pair
			authority, err := pair.authority()
			if err != nil {
				require.NoError(t, pair.renewAuthority())
				authority, err = pair.authority()
				require.NoError(t, err)
				authorities++
				if authorities > 1 {
					verify(t, pair.authorities, before.certificate, names)
				}
			}
			if !pair.isServing(authority.Leaf, names) {
				require.NoError(t, pair.renewServing(authority, names, 3*month))
				certificates++
			}
			require.True(t, pair.isServing(authority.Leaf, names))
			require.False(t, pair.isServing(authority.Leaf, []string{"other.shop.svc"}))
			verify(t, pair.authorities, pair.certificate, names)
			time.Sleep(month)
		}
		assert.Equal(t, 2, authorities)
		assert.Len(t, parseAll(pair.authorities), 2, "the former authority is trusted")
		assert.InDelta(t, 50, certificates, 2)
		time.Sleep(authorityValidity)
		require.NoError(t, pair.renewAuthority())
		assert.Len(t, parseAll(pair.authorities), 1, "without expired authorities")
	})
}

func verify(t *testing.T, authorities, certificate []byte, names []string) {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(authorities))
	served := parseAll(certificate)
	require.Len(t, served, 1)
	for _, name := range names {
		_, err := served[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		require.NoError(t, err)
	}
}

func TestKeyPair_RejectsForeignData(t *testing.T) {
	pair := &keyPair{}
	require.NoError(t, pair.renewAuthority())
	authority, err := pair.authority()
	require.NoError(t, err)
	require.NoError(t, pair.renewServing(authority, []string{"a"}, time.Hour))
	for name, foreign := range map[string]keyPair{
		"no data":                   {},
		"no key":                    {authorities: pair.authorities},
		"serving certificate as CA": {authorities: pair.certificate, authorityKey: pair.key},
		"key of a different CA":     {authorities: pair.authorities, authorityKey: pair.key},
	} {
		_, err := foreign.authority()
		assert.Error(t, err, name)
	}
	_, err = tls.X509KeyPair(pair.certificate, pair.key)
	require.NoError(t, err)
	assert.False(t, pair.isServing(authority.Leaf, []string{"b"}))
}
