package transport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/credentials"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

// TestConfig_HiddenFromVerbsHandlersEncoders prints configs, and programs' own types that hold one, in every way.
func TestConfig_HiddenFromVerbsHandlersEncoders(t *testing.T) {
	const text = "s3cr3t"
	secret := kubeconfig.NewSecret(text)
	plugin := transport.ExecPlugin{
		Exec:          kubeconfig.Exec{Command: "login", Args: []string{text}, Env: []kubeconfig.EnvVar{{Name: "PASSWORD", Value: secret}}},
		ClusterConfig: []byte(`{"key":"` + text + `"}`),
	}
	oidc := transport.OIDC{Issuer: "https://issuer", ClientID: "c", ClientSecret: secret, IDToken: secret, RefreshToken: secret}
	cfg := transport.Config{Server: "https://h", Token: secret, Password: secret, KeyData: secret, Exec: &plugin, OIDC: &oidc}
	cfg.ProxyURL = kubeconfig.NewSecret("http://u:" + text + "@proxy")
	inHidden := cfg
	inHidden.Exec = &transport.ExecPlugin{Exec: kubeconfig.Exec{Command: "login", Env: plugin.Env}}
	cluster := kubeconfig.Cluster{Server: "https://h", ProxyURL: cfg.ProxyURL}
	type hidden struct {
		cfg     transport.Config
		oidc    transport.OIDC
		env     kubeconfig.EnvVar
		cluster kubeconfig.Cluster
	}
	unexported := hidden{inHidden, oidc, plugin.Env[0], cluster}
	type shown struct{ Config transport.Config }
	var output bytes.Buffer
	for _, value := range []any{
		cfg, &cfg, cluster, &cluster, plugin, &plugin, oidc, &oidc, plugin.Env[0], plugin.Env, unexported, &unexported,
		shown{cfg}, &shown{cfg}, map[string]transport.Config{"a": cfg}, []any{cfg},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%T"} {
			_, _ = fmt.Fprintf(&output, verb, value)
		}
		slog.New(slog.NewTextHandler(&output, nil)).Info("m", "value", value)
		slog.New(slog.NewJSONHandler(&output, nil)).Info("m", "value", value)
		encoded, _ := json.Marshal(value)
		output.Write(encoded)
	}
	assert.Contains(t, output.String(), "https://h")
	for _, form := range []string{text, fmt.Sprintf("%x", text), fmt.Sprintf("%X", text), "115 51 99", "czNjcjN0"} {
		assert.NotContains(t, output.String(), form)
	}
}

// TestConfig_SecretsNeverPrinted puts secrets everywhere a config can hold them, makes everything go wrong, and looks
// for them in all that is printed.
func TestConfig_SecretsNeverPrinted(t *testing.T) {
	const secret = "s3cret"
	certificate, key := credentials.NewCertificate(t, "ann", time.Now().Add(time.Hour))
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
		"token":       {Token: kubeconfig.NewSecret(secret)},
		"token file":  {Token: kubeconfig.NewSecret(secret), TokenFile: filepath.Join(t.TempDir(), "missing")},
		"basic":       {Username: "ann", Password: kubeconfig.NewSecret(secret)},
		"certificate": {CertData: certificate, KeyData: kubeconfig.NewSecret(string(key))},
		"broken key":  {CertData: certificate, KeyData: kubeconfig.NewSecret(secret)},
		"exec": {Exec: &transport.ExecPlugin{
			Exec: kubeconfig.Exec{
				APIVersion: kubeconfig.ExecV1, Command: "no-such-login", Args: []string{secret},
				Env: []kubeconfig.EnvVar{{Name: "PASSWORD", Value: kubeconfig.NewSecret(secret)}},
			},
			ClusterConfig: []byte(`{"key":"` + secret + `"}`),
		}},
		"oidc":  {OIDC: &transport.OIDC{Issuer: "https://127.0.0.1:1", ClientID: "c", ClientSecret: kubeconfig.NewSecret(secret), IDToken: kubeconfig.NewSecret(secret), RefreshToken: kubeconfig.NewSecret(secret)}},
		"proxy": {Token: kubeconfig.NewSecret(secret), ProxyURL: kubeconfig.NewSecret("http://ann:" + secret + "@127.0.0.1:1")},
	}
	for name, cfg := range credentials {
		cfg.Server = server.URL
		cfg.OnAttempt = func(_ context.Context, a transport.Attempt) { show(a) }
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

// withoutTime omits the time, whose digits can be those of a secret.
var withoutTime = &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}}

func TestConfig_HidesPasswordInURL(t *testing.T) {
	for _, server := range []string{
		"https://admin:hun?ter2@host:6443", "https://admin:hun#ter2@host", "https://admin:hun/ter2@host", "https://admin:hunter2@host:6443/%zz",
		"https://admin:7777?hunter2@host", "admin:hunter2@host", "https://admin:hun?t@er2@host", "https://host?token=hunter2", "https://host#hunter2",
	} {
		cfg := transport.Config{Server: server, ProxyURL: kubeconfig.NewSecret(server)}
		var shown bytes.Buffer
		_, err := transport.Open(&cfg)
		require.Error(t, err)
		_, issuer := transport.Open(&transport.Config{Server: "https://host", OIDC: &transport.OIDC{Issuer: server, ClientID: "c", RefreshToken: kubeconfig.NewSecret("r")}})
		require.Error(t, issuer)
		_, proxy := transport.Open(&transport.Config{Server: "https://host", ProxyURL: kubeconfig.NewSecret(server)})
		_, _ = fmt.Fprintln(&shown, err, issuer, proxy, cfg, &cfg)
		slog.New(slog.NewJSONHandler(&shown, withoutTime)).Info("opening", "config", cfg)
		for _, secret := range []string{"hun", "ter2", "7777", "er2"} {
			assert.NotContains(t, shown.String(), secret, server)
		}
	}
}

func TestConfig_PrintsWithoutSecrets(t *testing.T) {
	cfg := transport.Config{Server: "https://c", Token: kubeconfig.NewSecret("s3cret"), Password: kubeconfig.NewSecret("s3cret"), Username: "u", KeyData: kubeconfig.NewSecret("s3cret"), CertData: []byte("x")}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, value := range []any{cfg, &cfg} {
			text := fmt.Sprintf(format, value)
			assert.NotContains(t, text, "s3cret", format)
			assert.Contains(t, text, "https://c", format)
		}
	}
}
