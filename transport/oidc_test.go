package transport

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOIDCPrintsWithoutItsTokens(t *testing.T) {
	oidc := OIDC{Issuer: "https://user:" + planted + "@id.example/x", ClientID: "kubectl", ClientSecret: NewSecret(planted), IDToken: NewSecret(planted), RefreshToken: NewSecret(planted)}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "oidc", oidc, "pointer", &oidc, "config", Config{OIDC: &oidc})
	assert.NotContains(t, log.String(), planted)
	assert.Contains(t, log.String(), "id.example")
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, value := range []any{oidc, &oidc, Config{OIDC: &oidc}, struct{ O OIDC }{oidc}} {
			assert.NotContains(t, fmt.Sprintf(format, value), planted, format)
		}
		assert.Contains(t, fmt.Sprintf(format, oidc), "kubectl", format)
	}
}

func TestOpenRefusesAnOIDCUserThatCannotWork(t *testing.T) {
	const issuer = "https://id.example"
	for name, tc := range map[string]struct {
		oidc OIDC
		says string
	}{
		"no issuer":              {OIDC{ClientID: "c", RefreshToken: NewSecret(planted)}, "idp-issuer-url"},
		"no client":              {OIDC{Issuer: issuer, RefreshToken: NewSecret(planted)}, "client-id"},
		"plain http":             {OIDC{Issuer: "http://id.example", ClientID: "c", RefreshToken: NewSecret(planted)}, "must be https"},
		"a user in the URL":      {OIDC{Issuer: "https://" + planted + "@id.example", ClientID: "c", RefreshToken: NewSecret(planted)}, "leave them out"},
		"a query":                {OIDC{Issuer: issuer + "?k=" + planted, ClientID: "c", RefreshToken: NewSecret(planted)}, "a query"},
		"no URL":                 {OIDC{Issuer: "id.example", ClientID: "c", RefreshToken: NewSecret(planted)}, "https://host"},
		"no token":               {OIDC{Issuer: issuer, ClientID: "c", ClientSecret: NewSecret(planted)}, "log in"},
		"an opaque token":        {OIDC{Issuer: issuer, ClientID: "c", IDToken: NewSecret(planted)}, "no JWT"},
		"a token of two lines":   {OIDC{Issuer: issuer, ClientID: "c", IDToken: NewSecret(jwtUntil("a", time.Now().Add(time.Hour)) + "\n" + planted)}, "control character"},
		"an authority not there": {OIDC{Issuer: issuer, ClientID: "c", RefreshToken: NewSecret(planted), CAFile: "/missing"}, "certificate authority"},
		"no authority":           {OIDC{Issuer: issuer, ClientID: "c", RefreshToken: NewSecret(planted), CAData: []byte(planted)}, "no PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(&Config{Server: "https://127.0.0.1:1", OIDC: &tc.oidc})
			require.ErrorContains(t, err, "oidc: ")
			require.ErrorContains(t, err, tc.says)
			assert.NotContains(t, err.Error(), planted)
		})
	}
	_, err := Open(&Config{Server: "https://127.0.0.1:1", OIDC: &OIDC{Issuer: "http://127.0.0.1:5556/dex", ClientID: "c", RefreshToken: NewSecret("r")}})
	require.NoError(t, err, "http on this machine")
}
