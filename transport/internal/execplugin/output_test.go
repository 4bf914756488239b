package execplugin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/credentials"
	"github.com/anykind/anykind/transport/kubeconfig"
)

func outputWith(fields string) string {
	return fmt.Sprintf(`{"kind":"ExecCredential","apiVersion":%q,%s}`, kubeconfig.ExecV1, fields)
}

func TestParseOutput_AcceptsWhatKubectlAccepts(t *testing.T) {
	end := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	certificate, key := credentials.NewCertificate(t, "ann", end)
	for name, tc := range map[string]struct {
		output      string
		token       string
		certificate bool
		expires     time.Time
	}{
		"a token":                       {credentials.TokenOutput("t"), "Bearer t", false, time.Time{}},
		"a token with a line feed":      {credentials.TokenOutput("t\n"), "Bearer t", false, time.Time{}},
		"a token that expires":          {credentials.TokenOutput("t", end), "Bearer t", false, end},
		"no expiry":                     {outputWith(`"status":{"token":"t","expirationTimestamp":null}`), "Bearer t", false, time.Time{}},
		"a zone":                        {outputWith(`"status":{"token":"t","expirationTimestamp":"2030-01-02T04:04:05+01:00"}`), "Bearer t", false, end},
		"a certificate":                 {credentials.CertificateOutput(certificate, key), "", true, end},
		"a certificate to be used less": {credentials.CertificateOutput(certificate, key, end.Add(-time.Hour)), "", true, end.Add(-time.Hour)},
		"a certificate that ends first": {credentials.CertificateOutput(certificate, key, end.Add(time.Hour)), "", true, end},
		"unknown fields":                {outputWith(`"spec":{"interactive":true},"status":{"token":"t","new":{}}`), "Bearer t", false, time.Time{}},
		"YAML":                          {"kind: ExecCredential\napiVersion: " + kubeconfig.ExecV1 + "\nstatus:\n  token: t\n", "Bearer t", false, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseOutput([]byte(tc.output), kubeconfig.ExecV1)
			require.NoError(t, err)
			assert.Equal(t, tc.token, got.Authorization)
			assert.Equal(t, tc.certificate, got.Certificate != nil)
			assert.True(t, tc.expires.Equal(got.Expires), "%s", got.Expires)
		})
	}
}

func TestParseOutput_ErrorsHideOutput(t *testing.T) {
	certificate, key := credentials.NewCertificate(t, credentials.Planted, time.Now().Add(time.Hour))
	_, otherKey := credentials.NewCertificate(t, credentials.Planted, time.Now().Add(time.Hour))
	for name, tc := range map[string]struct{ output, want string }{
		"nothing":              {" \n", "printed nothing"},
		"garbage":              {"Hello " + credentials.Planted + "! {", "run it by hand"},
		"a line before":        {"Logged in as " + credentials.Planted + "\n" + credentials.TokenOutput(credentials.Planted), "messages for people"},
		"half of it":           {credentials.TokenOutput(credentials.Planted)[:60], "no ExecCredential in JSON"},
		"two":                  {credentials.TokenOutput(credentials.Planted) + credentials.TokenOutput(credentials.Planted), "no ExecCredential in JSON"},
		"a list":               {`["` + credentials.Planted + `"]`, "no ExecCredential in JSON"},
		"a number as token":    {outputWith(`"status":{"token":5305305305}`), "no ExecCredential in JSON"},
		"null":                 {"null", "another kind"},
		"another kind":         {`{"kind":"` + credentials.Planted + `","apiVersion":"` + kubeconfig.ExecV1 + `"}`, "another kind"},
		"an older version":     {strings.Replace(credentials.TokenOutput(credentials.Planted), "io/v1", "io/v1beta1", 1), "client.authentication.k8s.io/v1beta1"},
		"an unknown version":   {strings.Replace(credentials.TokenOutput("t"), kubeconfig.ExecV1, credentials.Planted, 1), "a different apiVersion"},
		"no status":            {outputWith(`"spec":{}`), "without a status"},
		"an empty status":      {outputWith(`"status":{}`), "neither a token"},
		"a blank token":        {credentials.TokenOutput(" \n"), "neither a token"},
		"a token of two lines": {credentials.TokenOutput(credentials.Planted + "\nX-Remote-User: admin"), "control character"},
		"no key":               {credentials.CertificateOutput(certificate, nil), "only one"},
		"no certificate":       {credentials.CertificateOutput(nil, key), "only one"},
		"another's key":        {credentials.CertificateOutput(certificate, otherKey), "no PEM pair"},
		"no PEM":               {credentials.CertificateOutput([]byte(credentials.Planted), []byte(credentials.Planted)), "no PEM pair"},
		"a bad time":           {outputWith(`"status":{"token":"` + credentials.Planted + `","expirationTimestamp":"` + credentials.Planted + `"}`), "RFC 3339"},
		"an empty time":        {outputWith(`"status":{"token":"t","expirationTimestamp":""}`), "RFC 3339"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseOutput([]byte(tc.output), kubeconfig.ExecV1)
			require.ErrorContains(t, err, tc.want)
			assert.Nil(t, got)
			for _, secret := range []string{credentials.Planted, "5305305305", string(key), string(certificate)} {
				assert.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), secret)
			}
		})
	}
}

func FuzzParseOutput(f *testing.F) {
	certificate, key := credentials.NewCertificate(f, "ann", time.Now().Add(time.Hour))
	for _, seed := range []string{
		"", "null", credentials.TokenOutput("t"), credentials.TokenOutput("t", time.Now()), credentials.CertificateOutput(certificate, key, time.Now()),
		credentials.CertificateOutput(key, certificate), "kind: ExecCredential\nstatus: &a {token: *a}", outputWith(`"status":{"token":"\u0000"}`),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parseOutput(data, kubeconfig.ExecV1)
		if err != nil {
			assert.Nil(t, got)
			return
		}
		assert.True(t, got.Authorization != "" || got.Certificate != nil)
		assert.NotContains(t, got.Authorization, "\n")
	})
}
