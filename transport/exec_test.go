package transport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPluginPrintsWithoutWhatMayBeSecret(t *testing.T) {
	plugin := ExecPlugin{
		APIVersion: kubeconfig.ExecV1, Command: "aws", Args: []string{planted}, ClusterConfig: json.RawMessage(`"` + planted + `"`),
		Env: []ExecEnv{{Name: "AWS_PROFILE", Value: NewSecret(planted)}},
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.Info("x", "plugin", plugin, "pointer", &plugin, "env", plugin.Env[0], "config", Config{Exec: &plugin})
	assert.NotContains(t, log.String(), planted)
	assert.Contains(t, log.String(), "AWS_PROFILE")
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, value := range []any{plugin, &plugin, plugin.Env[0], &plugin.Env[0], plugin.Env, Config{Exec: &plugin}, struct{ P ExecPlugin }{plugin}} {
			assert.NotContains(t, fmt.Sprintf(format, value), planted, format)
		}
		assert.Contains(t, fmt.Sprintf(format, plugin), "aws", format)
	}
}

func TestOpenRefusesAPluginThatCannotWork(t *testing.T) {
	for name, tc := range map[string]struct {
		plugin ExecPlugin
		says   string
	}{
		"no command":         {ExecPlugin{APIVersion: kubeconfig.ExecV1}, "no command"},
		"no version":         {ExecPlugin{Command: "aws"}, "apiVersion"},
		"an old version":     {ExecPlugin{Command: "aws", APIVersion: "client.authentication.k8s.io/v1alpha1"}, "needs an update"},
		"an unknown mode":    {ExecPlugin{Command: "aws", APIVersion: kubeconfig.ExecV1, InteractiveMode: "Sometimes"}, "Sometimes"},
		"a nameless env":     {ExecPlugin{Command: "aws", APIVersion: kubeconfig.ExecV1, Env: []ExecEnv{{Value: NewSecret(planted)}}}, "environment variable"},
		"an env with =":      {ExecPlugin{Command: "aws", APIVersion: kubeconfig.ExecV1, Env: []ExecEnv{{Name: "A=B", Value: NewSecret(planted)}}}, "A=B"},
		"a broken extension": {ExecPlugin{Command: "aws", APIVersion: kubeconfig.ExecV1, ClusterConfig: json.RawMessage(planted)}, "no JSON"},
		"not allowed":        {ExecPlugin{Command: "aws", APIVersion: kubeconfig.ExecV1, Allowed: []string{"gcloud"}}, `exec plugin "aws"`},
		"nothing allowed":    {ExecPlugin{Command: "aws", APIVersion: kubeconfig.ExecV1, Allowed: []string{}}, "ExecPlugin.Allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.plugin.Args = []string{planted}
			_, err := Open(&Config{Server: "https://127.0.0.1:1", Exec: &tc.plugin})
			require.ErrorContains(t, err, tc.says)
			assert.NotContains(t, err.Error(), planted)
		})
	}
}

func TestChangingAPluginAfterOpenChangesNothing(t *testing.T) {
	plugin := &ExecPlugin{Command: "aws", APIVersion: kubeconfig.ExecV1, Args: []string{"a"}, Allowed: []string{"aws"}}
	a := execAuthenticatorOf(t, &Config{Exec: plugin})
	plugin.Args[0], plugin.Allowed[0], plugin.Command = "b", "b", "b"
	assert.Equal(t, &ExecPlugin{Command: "aws", APIVersion: kubeconfig.ExecV1, Args: []string{"a"}, Allowed: []string{"aws"}}, a.plugin)
}
