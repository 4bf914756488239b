package kubeconfig_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/transport/kubeconfig"
)

func TestTypes_PrintNoSecret(t *testing.T) {
	const secret = "xyzzy"
	raw := json.RawMessage(`{"a":"` + secret + `"}`)
	file := &kubeconfig.File{
		CurrentContext: "x",
		Clusters: map[string]kubeconfig.Cluster{"c": {
			Server: "https://u:" + secret + "@host/path?key=" + secret, ProxyURL: kubeconfig.NewSecret("http://u:" + secret + "@proxy"),
			TLSServerName: "name", InsecureSkipTLSVerify: true,
			Extensions: kubeconfig.Extensions{"e": raw},
		}},
		Users: map[string]kubeconfig.User{"u": {
			Token: kubeconfig.NewSecret(secret), Username: "u", Password: kubeconfig.NewSecret(secret), ClientKeyData: kubeconfig.NewSecretData([]byte(secret)), ClientCertificateData: []byte(secret),
			Impersonate:  "bob",
			Exec:         &kubeconfig.Exec{Command: "login", Args: []string{secret}, Env: []kubeconfig.EnvVar{{Name: "N", Value: kubeconfig.NewSecret(secret)}}},
			AuthProvider: &kubeconfig.AuthProvider{Name: "oidc", Config: map[string]kubeconfig.Secret{"refresh-token": kubeconfig.NewSecret(secret)}},
			Extensions:   kubeconfig.Extensions{"e": raw},
		}},
		Contexts:    map[string]kubeconfig.Context{"x": {Cluster: "c", User: "u", Extensions: kubeconfig.Extensions{"e": raw}}},
		Extensions:  kubeconfig.Extensions{"e": raw},
		Preferences: kubeconfig.Preferences{Extensions: kubeconfig.Extensions{"e": raw}},
	}
	user := file.Users["u"]
	cluster := file.Clusters["c"]
	context := file.Contexts["x"]
	values := map[string]any{
		"File": *file, "*File": file, "User": user, "*User": &user, "Cluster": cluster, "Context": context,
		"Exec": *user.Exec, "*Exec": user.Exec, "EnvVar": user.Exec.Env[0], "AuthProvider": *user.AuthProvider,
		"*AuthProvider": user.AuthProvider, "Extensions": file.Extensions, "Preferences": file.Preferences,
		"Resolved": kubeconfig.ResolvedContext{Cluster: cluster, User: user}, "*Resolved": &kubeconfig.ResolvedContext{Cluster: cluster, User: user},
		"users": file.Users, "clusters": file.Clusters, "list": []kubeconfig.User{user},
		"in another struct": struct{ U *kubeconfig.User }{&user}, "in an error": fmt.Errorf("broken: %v", user),
	}
	for name, value := range values {
		t.Run(name, func(t *testing.T) {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%T"} {
				printed := fmt.Sprintf(verb, value)
				assert.NotContains(t, printed, secret, verb)
				assert.NotContains(t, printed, fmt.Sprintf("%x", secret), verb)
				assert.NotContains(t, printed, fmt.Sprintf("%X", secret), verb)
				assert.NotContains(t, printed, fmt.Sprintf("%d", []byte(secret))[1:12], verb)
			}
			var log bytes.Buffer
			slog.New(slog.NewTextHandler(&log, nil)).Info("m", "value", value)
			assert.NotContains(t, log.String(), secret)
			slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "value", value)
			assert.NotContains(t, log.String(), secret)
		})
	}
}

func TestTypes_PrintNamesAndKinds(t *testing.T) {
	file := parse(t, one("server: 'https://u:p@c:6443/p', proxy-url: 'http://u:p@proxy:3128'", `token: t, as: bob,
exec: {command: login, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, args: [a, b]}`))
	assert.Equal(t, "[current-context=x contexts=x clusters=c users=u]", fmt.Sprint(file))
	assert.Equal(t, "[server=…@c:6443/p proxy-url=…@proxy:3128]", fmt.Sprint(file.Clusters["c"]))
	assert.Equal(t, "[credential=token credential=exec as=bob]", fmt.Sprint(file.Users["u"]))
	assert.Equal(t, "[command=login apiVersion=client.authentication.k8s.io/v1 args=2 env=0]", fmt.Sprint(file.Users["u"].Exec))
	var none *kubeconfig.Exec
	assert.Equal(t, "<nil>", fmt.Sprint(none))
	r, err := file.Resolve(nil)
	require.NoError(t, err)
	assert.Equal(t, "[context=x namespace=default cluster=[server=…@c:6443/p proxy-url=…@proxy:3128] "+
		"user=[credential=token as=bob]]", fmt.Sprint(r))
}
