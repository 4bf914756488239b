package kubeconfig_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"testing"

	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestSecret_HiddenFromVerbsHandlersEncoders(t *testing.T) {
	const text = "xyzzy"
	secret := kubeconfig.NewSecret(text)
	type hidden struct {
		secret kubeconfig.Secret
		data   kubeconfig.SecretData
		user   kubeconfig.Exec
	}
	unexported := hidden{secret, kubeconfig.NewSecretData([]byte(text)), kubeconfig.Exec{Env: []kubeconfig.EnvVar{{Name: "N", Value: secret}}}}
	var shown bytes.Buffer
	for _, value := range []any{
		secret, &secret, unexported, &unexported, []kubeconfig.Secret{secret}, map[string]kubeconfig.Secret{"a": secret},
		struct{ S kubeconfig.Secret }{secret}, unexported.data, kubeconfig.User{Token: secret, ClientKeyData: unexported.data},
		map[kubeconfig.Secret]int{secret: 1},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%p", "%T"} {
			_, _ = fmt.Fprintf(&shown, verb, value)
		}
		slog.New(slog.NewTextHandler(&shown, nil)).Info("m", "value", value)
		slog.New(slog.NewJSONHandler(&shown, nil)).Info("m", "value", value)
		for _, encode := range []func(any) ([]byte, error){json.Marshal, xml.Marshal, yaml.Marshal} {
			encoded, _ := encode(value) // not every encoder knows every type
			shown.Write(encoded)
		}
	}
	assert.Contains(t, shown.String(), "REDACTED")
	for _, form := range []string{text, fmt.Sprintf("%x", text), fmt.Sprintf("%X", text), "120 121 122", "eHl6enk"} {
		assert.NotContains(t, shown.String(), form)
	}
	assert.Equal(t, text, secret.Reveal())
	assert.Equal(t, text, unexported.data.Reveal())
}

func TestSecret_ComparesByText(t *testing.T) {
	one := kubeconfig.NewSecret("a")
	assert.True(t, one == kubeconfig.NewSecret("a"))
	assert.False(t, one == kubeconfig.NewSecret("b"))
	assert.True(t, kubeconfig.Secret{} == kubeconfig.NewSecret(""))
	assert.Empty(t, kubeconfig.Secret{}.Reveal())
	assert.Empty(t, fmt.Sprint(kubeconfig.Secret{}))
}

func TestDocument_PutWritesSecrets(t *testing.T) {
	d, err := kubeconfig.ParseDocument(nil, "")
	require.NoError(t, err)
	secret := kubeconfig.NewSecret("xyzzy")
	user := kubeconfig.User{
		Token: secret, Password: secret, ClientKeyData: kubeconfig.NewSecretData([]byte("key")),
		Exec:         &kubeconfig.Exec{APIVersion: kubeconfig.ExecV1, Command: "login", Env: []kubeconfig.EnvVar{{Name: "N", Value: secret}}},
		AuthProvider: &kubeconfig.AuthProvider{Name: "oidc", Config: map[string]kubeconfig.Secret{"refresh-token": secret}},
		Extensions:   kubeconfig.Extensions{"e": []byte(`{"a":"xyzzy"}`)},
	}
	require.NoError(t, d.Put(&kubeconfig.File{Users: map[string]kubeconfig.User{"ann": user}}))
	written, err := d.Bytes()
	require.NoError(t, err)
	assert.NotContains(t, string(written), "REDACTED")
	read, err := d.File()
	require.NoError(t, err)
	assert.Equal(t, user, read.Users["ann"])
}
