package transport_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
)

// TestConfig_HiddenFromVerbsHandlersEncoders prints configs, and programs' own types that hold one, in every way.
func TestConfig_HiddenFromVerbsHandlersEncoders(t *testing.T) {
	const text = "s3cr3t"
	secret := transport.NewSecret(text)
	plugin := transport.ExecPlugin{
		Command: "login", Args: []string{text}, Env: []transport.ExecEnv{{Name: "PASSWORD", Value: secret}},
		ClusterConfig: []byte(`{"key":"` + text + `"}`),
	}
	oidc := transport.OIDC{Issuer: "https://issuer", ClientID: "c", ClientSecret: secret, IDToken: secret, RefreshToken: secret}
	cfg := transport.Config{Server: "https://h", Token: secret, Password: secret, KeyData: secret, Exec: &plugin, OIDC: &oidc}
	withProxy := cfg
	withProxy.ProxyURL = "http://u:" + text + "@proxy"
	inHidden := cfg
	inHidden.Exec = &transport.ExecPlugin{Command: "login", Env: plugin.Env}
	type hidden struct {
		cfg  transport.Config
		oidc transport.OIDC
		env  transport.ExecEnv
	}
	type shown struct{ Config transport.Config }
	var output bytes.Buffer
	for _, value := range []any{
		cfg, &cfg, withProxy, &withProxy, plugin, &plugin, oidc, &oidc, plugin.Env[0], plugin.Env, hidden{inHidden, oidc, plugin.Env[0]},
		&hidden{inHidden, oidc, plugin.Env[0]}, shown{withProxy}, &shown{withProxy}, map[string]transport.Config{"a": withProxy}, []any{withProxy},
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
