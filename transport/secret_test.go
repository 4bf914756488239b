package transport_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNoPlantedSecretIsEverShown puts secrets everywhere a config can hold them, makes everything go wrong, and looks
// for them in all that is printed.
func TestNoPlantedSecretIsEverShown(t *testing.T) {
	const secret = "s3cret"
	certificate, key := selfSigned(t, "ann")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>go away", http.StatusUnauthorized)
	}))
	defer server.Close()
	var shown bytes.Buffer
	log := slog.New(slog.NewTextHandler(&shown, nil))
	show := func(values ...any) {
		for _, value := range values {
			fmt.Fprintf(&shown, "%v\n%+v\n%#v\n%s\n", value, value, value, value)
			log.Info("value", "it", value)
		}
	}
	credentials := map[string]transport.Config{
		"token":       {Token: transport.NewSecret(secret)},
		"token file":  {Token: transport.NewSecret(secret), TokenFile: filepath.Join(t.TempDir(), "missing")},
		"basic":       {Username: "ann", Password: transport.NewSecret(secret)},
		"certificate": {CertData: certificate, KeyData: transport.NewSecret(string(key))},
		"broken key":  {CertData: certificate, KeyData: transport.NewSecret(secret)},
		"exec": {Exec: &transport.ExecPlugin{
			APIVersion: "client.authentication.k8s.io/v1", Command: "no-such-login", Args: []string{secret},
			Env: []transport.ExecEnv{{Name: "PASSWORD", Value: transport.NewSecret(secret)}}, ClusterConfig: []byte(`{"key":"` + secret + `"}`),
		}},
		"oidc":  {OIDC: &transport.OIDC{Issuer: "https://127.0.0.1:1", ClientID: "c", ClientSecret: transport.NewSecret(secret), IDToken: transport.NewSecret(secret), RefreshToken: transport.NewSecret(secret)}},
		"proxy": {Token: transport.NewSecret(secret), ProxyURL: "http://ann:" + secret + "@127.0.0.1:1"},
	}
	for name, cfg := range credentials {
		cfg.Server = server.URL
		cfg.Observe = func(_ context.Context, a transport.Attempt) { show(a) }
		show(cfg, &cfg)
		for _, address := range []string{server.URL, "https://127.0.0.1:1", "https://ann:" + secret + "@127.0.0.1:1"} {
			cfg.Server = address
			conn, err := transport.Open(&cfg)
			if err != nil {
				show(err)
				continue
			}
			_, err = conn.Do(t.Context(), &transport.Request{Path: "/api?token=" + secret})
			assert.Error(t, err, name)
			show(err)
			_, _, err = conn.Upgrade(t.Context(), &transport.Request{Path: "/exec?token=" + secret, Header: http.Header{"Upgrade": {"websocket"}}})
			assert.Error(t, err, name)
			show(err)
			conn.Close()
		}
	}
	require.NotEmpty(t, shown.String())
	assert.NotContains(t, shown.String(), secret)
	assert.NotContains(t, shown.String(), string(bytes.Split(key, []byte("\n"))[1]), "the key's first line")
}
