package transport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/credentials"
	"github.com/anykind/anykind/transport/kubeconfig"
)

func TestExecPlugin_PrintsWithoutSecrets(t *testing.T) {
	plugin := ExecPlugin{
		Exec: kubeconfig.Exec{
			APIVersion: kubeconfig.ExecV1, Command: "aws", Args: []string{credentials.Planted},
			Env: []kubeconfig.EnvVar{{Name: "AWS_PROFILE", Value: kubeconfig.NewSecret(credentials.Planted)}},
		},
		ClusterConfig: json.RawMessage(`"` + credentials.Planted + `"`),
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.Info("x", "plugin", plugin, "pointer", &plugin, "env", plugin.Env[0], "config", Config{Exec: &plugin})
	assert.NotContains(t, log.String(), credentials.Planted)
	assert.Contains(t, log.String(), "AWS_PROFILE")
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, value := range []any{plugin, &plugin, plugin.Env[0], &plugin.Env[0], plugin.Env, Config{Exec: &plugin}, struct{ P ExecPlugin }{plugin}} {
			assert.NotContains(t, fmt.Sprintf(format, value), credentials.Planted, format)
		}
		assert.Contains(t, fmt.Sprintf(format, plugin), "aws", format)
	}
}

func TestOpen_RejectsInvalidPlugin(t *testing.T) {
	for name, tc := range map[string]struct {
		plugin ExecPlugin
		want   string
	}{
		"no command":         {ExecPlugin{Exec: kubeconfig.Exec{APIVersion: kubeconfig.ExecV1}}, "no command"},
		"no version":         {ExecPlugin{Exec: kubeconfig.Exec{Command: "aws"}}, "apiVersion"},
		"an old version":     {ExecPlugin{Exec: kubeconfig.Exec{Command: "aws", APIVersion: "client.authentication.k8s.io/v1alpha1"}}, "needs an update"},
		"an unknown mode":    {ExecPlugin{Exec: kubeconfig.Exec{Command: "aws", APIVersion: kubeconfig.ExecV1, InteractiveMode: "Sometimes"}}, "Sometimes"},
		"a nameless env":     {ExecPlugin{Exec: kubeconfig.Exec{Command: "aws", APIVersion: kubeconfig.ExecV1, Env: []kubeconfig.EnvVar{{Value: kubeconfig.NewSecret(credentials.Planted)}}}}, "environment variable"},
		"an env with =":      {ExecPlugin{Exec: kubeconfig.Exec{Command: "aws", APIVersion: kubeconfig.ExecV1, Env: []kubeconfig.EnvVar{{Name: "A=B", Value: kubeconfig.NewSecret(credentials.Planted)}}}}, "A=B"},
		"a broken extension": {ExecPlugin{Exec: kubeconfig.Exec{Command: "aws", APIVersion: kubeconfig.ExecV1}, ClusterConfig: json.RawMessage(credentials.Planted)}, "no JSON"},
		"not allowed":        {ExecPlugin{Exec: kubeconfig.Exec{Command: "aws", APIVersion: kubeconfig.ExecV1}, Allowlist: []string{"gcloud"}}, `exec plugin "aws"`},
		"nothing allowed":    {ExecPlugin{Exec: kubeconfig.Exec{Command: "aws", APIVersion: kubeconfig.ExecV1}, Allowlist: []string{}}, "ExecPlugin.Allowlist"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.plugin.Args = []string{credentials.Planted}
			_, err := Open(&Config{Server: "https://127.0.0.1:1", Exec: &tc.plugin})
			require.ErrorContains(t, err, tc.want)
			assert.NotContains(t, err.Error(), credentials.Planted)
		})
	}
}

func TestConfig_ExecConfigIsACopy(t *testing.T) {
	plugin := &ExecPlugin{
		Exec:      kubeconfig.Exec{Command: "aws", Args: []string{"a"}, Env: []kubeconfig.EnvVar{{Name: "A"}}},
		Allowlist: []string{"aws"}, ClusterConfig: []byte("1"),
	}
	cfg := Config{Exec: plugin, CAData: []byte("1")}
	before := cfg.execConfig()
	after := cfg.execConfig()
	plugin.Args[0] = "b"
	plugin.Allowlist[0] = "b"
	plugin.Command = "b"
	plugin.ClusterConfig[0] = '2'
	plugin.Env[0].Name = "B"
	cfg.CAData[0] = '2'
	authority, err := after.CA.Content(time.Now())
	require.NoError(t, err)
	assert.Equal(t, "1", string(authority))
	assert.Equal(t, before, after)
	assert.Equal(t, []string{"aws", "a", "aws", "1", "A"},
		[]string{after.Command, after.Args[0], after.Allowlist[0], string(after.Cluster.Config), after.Env[0].Name})
}

func TestOIDC_PrintsWithoutSecrets(t *testing.T) {
	oidc := OIDC{Issuer: "https://user:" + credentials.Planted + "@id.example/x", ClientID: "kubectl", ClientSecret: kubeconfig.NewSecret(credentials.Planted), IDToken: kubeconfig.NewSecret(credentials.Planted), RefreshToken: kubeconfig.NewSecret(credentials.Planted)}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "oidc", oidc, "pointer", &oidc, "config", Config{OIDC: &oidc})
	assert.NotContains(t, log.String(), credentials.Planted)
	assert.Contains(t, log.String(), "id.example")
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, value := range []any{oidc, &oidc, Config{OIDC: &oidc}, struct{ O OIDC }{oidc}} {
			assert.NotContains(t, fmt.Sprintf(format, value), credentials.Planted, format)
		}
		assert.Contains(t, fmt.Sprintf(format, oidc), "kubectl", format)
	}
}

func TestOpen_RejectsInvalidOIDC(t *testing.T) {
	const issuer = "https://id.example"
	for name, tc := range map[string]struct {
		oidc OIDC
		want string
	}{
		"no issuer":              {OIDC{ClientID: "c", RefreshToken: kubeconfig.NewSecret(credentials.Planted)}, "idp-issuer-url"},
		"no client":              {OIDC{Issuer: issuer, RefreshToken: kubeconfig.NewSecret(credentials.Planted)}, "client-id"},
		"plain http":             {OIDC{Issuer: "http://id.example", ClientID: "c", RefreshToken: kubeconfig.NewSecret(credentials.Planted)}, "not https"},
		"a user in the URL":      {OIDC{Issuer: "https://" + credentials.Planted + "@id.example", ClientID: "c", RefreshToken: kubeconfig.NewSecret(credentials.Planted)}, "leave them out"},
		"a query":                {OIDC{Issuer: issuer + "?k=" + credentials.Planted, ClientID: "c", RefreshToken: kubeconfig.NewSecret(credentials.Planted)}, "a query"},
		"no URL":                 {OIDC{Issuer: "id.example", ClientID: "c", RefreshToken: kubeconfig.NewSecret(credentials.Planted)}, "https://host"},
		"no token":               {OIDC{Issuer: issuer, ClientID: "c", ClientSecret: kubeconfig.NewSecret(credentials.Planted)}, "log in"},
		"an opaque token":        {OIDC{Issuer: issuer, ClientID: "c", IDToken: kubeconfig.NewSecret(credentials.Planted)}, "not a JWT"},
		"a token of two lines":   {OIDC{Issuer: issuer, ClientID: "c", IDToken: kubeconfig.NewSecret(credentials.IDToken("a", time.Now().Add(time.Hour)) + "\n" + credentials.Planted)}, "control character"},
		"an authority not there": {OIDC{Issuer: issuer, ClientID: "c", RefreshToken: kubeconfig.NewSecret(credentials.Planted), CAFile: "/missing"}, "certificate authority"},
		"no authority":           {OIDC{Issuer: issuer, ClientID: "c", RefreshToken: kubeconfig.NewSecret(credentials.Planted), CAData: []byte(credentials.Planted)}, "no PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(&Config{Server: "https://127.0.0.1:1", OIDC: &tc.oidc})
			require.ErrorContains(t, err, "oidc: ")
			require.ErrorContains(t, err, tc.want)
			assert.NotContains(t, err.Error(), credentials.Planted)
		})
	}
	_, err := Open(&Config{Server: "https://127.0.0.1:1", OIDC: &OIDC{Issuer: "http://127.0.0.1:5556/dex", ClientID: "c", RefreshToken: kubeconfig.NewSecret("r")}})
	require.NoError(t, err, "http on this machine")
}
