package kubeconfig_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.yaml.in/yaml/v3"

	"github.com/anykind/anykind/transport/kubeconfig"
)

func TestSecret_HiddenInAllOutput(t *testing.T) {
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

func TestSecret_Equality(t *testing.T) {
	one := kubeconfig.NewSecret("a")
	assert.True(t, one == kubeconfig.NewSecret("a"))
	assert.False(t, one == kubeconfig.NewSecret("b"))
	assert.True(t, kubeconfig.Secret{} == kubeconfig.NewSecret(""))
	assert.Empty(t, kubeconfig.Secret{}.Reveal())
	assert.Empty(t, fmt.Sprint(kubeconfig.Secret{}))
}
