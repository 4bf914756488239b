package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// planted stands for every secret: no error, log or print may show it.
const planted = "s3cret-PLANTED"

// pairUntil is a client certificate and its key, in PEM.
func pairUntil(t testing.TB, name string, end time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

func answerWith(fields string) string {
	return fmt.Sprintf(`{"kind":"ExecCredential","apiVersion":%q,%s}`, kubeconfig.ExecV1, fields)
}

func TestAPluginsAnswerIsReadAsKubectlReadsIt(t *testing.T) {
	end := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	certificate, key := pairUntil(t, "ann", end)
	for name, tc := range map[string]struct {
		answer      string
		token       string
		certificate bool
		expires     time.Time
	}{
		"a token":                       {ExecToken("t"), "Bearer t", false, time.Time{}},
		"a token with a line feed":      {ExecToken("t\n"), "Bearer t", false, time.Time{}},
		"a token that expires":          {ExecToken("t", end), "Bearer t", false, end},
		"no expiry":                     {answerWith(`"status":{"token":"t","expirationTimestamp":null}`), "Bearer t", false, time.Time{}},
		"a zone":                        {answerWith(`"status":{"token":"t","expirationTimestamp":"2030-01-02T04:04:05+01:00"}`), "Bearer t", false, end},
		"a certificate":                 {ExecCertificate(certificate, key), "", true, end},
		"a certificate to be used less": {ExecCertificate(certificate, key, end.Add(-time.Hour)), "", true, end.Add(-time.Hour)},
		"a certificate that ends first": {ExecCertificate(certificate, key, end.Add(time.Hour)), "", true, end},
		"unknown fields":                {answerWith(`"spec":{"interactive":true},"status":{"token":"t","new":{}}`), "Bearer t", false, time.Time{}},
		"YAML":                          {"kind: ExecCredential\napiVersion: " + kubeconfig.ExecV1 + "\nstatus:\n  token: t\n", "Bearer t", false, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			who, expires, err := parseExecAnswer([]byte(tc.answer), kubeconfig.ExecV1)
			require.NoError(t, err)
			assert.Equal(t, tc.token, who.authorization)
			assert.Equal(t, tc.certificate, who.certificate != nil)
			assert.True(t, tc.expires.Equal(expires), "%s", expires)
		})
	}
}

func TestAPluginsBadAnswerIsRefusedWithoutShowingIt(t *testing.T) {
	certificate, key := pairUntil(t, planted, time.Now().Add(time.Hour))
	_, otherKey := pairUntil(t, planted, time.Now().Add(time.Hour))
	for name, tc := range map[string]struct{ answer, says string }{
		"nothing":              {" \n", "printed nothing"},
		"garbage":              {"Hello " + planted + "! {", "run it by hand"},
		"a line before":        {"Logged in as " + planted + "\n" + ExecToken(planted), "messages for people"},
		"half of it":           {ExecToken(planted)[:60], "no ExecCredential in JSON"},
		"two":                  {ExecToken(planted) + ExecToken(planted), "no ExecCredential in JSON"},
		"a list":               {`["` + planted + `"]`, "no ExecCredential in JSON"},
		"a number as token":    {answerWith(`"status":{"token":5305305305}`), "no ExecCredential in JSON"},
		"null":                 {"null", "another kind"},
		"another kind":         {`{"kind":"` + planted + `","apiVersion":"` + kubeconfig.ExecV1 + `"}`, "another kind"},
		"an older version":     {strings.Replace(ExecToken(planted), "io/v1", "io/v1beta1", 1), "client.authentication.k8s.io/v1beta1"},
		"an unknown version":   {strings.Replace(ExecToken("t"), kubeconfig.ExecV1, planted, 1), "another apiVersion"},
		"no status":            {answerWith(`"spec":{}`), "without a status"},
		"an empty status":      {answerWith(`"status":{}`), "neither a token"},
		"a blank token":        {ExecToken(" \n"), "neither a token"},
		"a token of two lines": {ExecToken(planted + "\nX-Remote-User: admin"), "control character"},
		"no key":               {ExecCertificate(certificate, nil), "only one"},
		"no certificate":       {ExecCertificate(nil, key), "only one"},
		"another's key":        {ExecCertificate(certificate, otherKey), "no PEM pair"},
		"no PEM":               {ExecCertificate([]byte(planted), []byte(planted)), "no PEM pair"},
		"a bad time":           {answerWith(`"status":{"token":"` + planted + `","expirationTimestamp":"` + planted + `"}`), "RFC 3339"},
		"an empty time":        {answerWith(`"status":{"token":"t","expirationTimestamp":""}`), "RFC 3339"},
	} {
		t.Run(name, func(t *testing.T) {
			who, _, err := parseExecAnswer([]byte(tc.answer), kubeconfig.ExecV1)
			require.ErrorContains(t, err, tc.says)
			assert.Nil(t, who)
			for _, secret := range []string{planted, "5305305305", string(key), string(certificate)} {
				assert.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), secret)
			}
		})
	}
}

func FuzzExecAnswer(f *testing.F) {
	certificate, key := pairUntil(f, "ann", time.Now().Add(time.Hour))
	for _, seed := range []string{
		"", "null", ExecToken("t"), ExecToken("t", time.Now()), ExecCertificate(certificate, key, time.Now()),
		ExecCertificate(key, certificate), "kind: ExecCredential\nstatus: &a {token: *a}", answerWith(`"status":{"token":"\u0000"}`),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		who, _, err := parseExecAnswer(data, kubeconfig.ExecV1)
		if err != nil {
			assert.Nil(t, who)
			return
		}
		assert.True(t, who.authorization != "" || who.certificate != nil)
		assert.NotContains(t, who.authorization, "\n")
	})
}
