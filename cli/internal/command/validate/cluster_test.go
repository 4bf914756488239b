package validate_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/flags"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/command/validate"
	"github.com/anykind/anykind/internal/testing/cluster"
)

func TestCommand_SavedSchemasEqualServers(t *testing.T) {
	const manifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: "3"
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        imagePullPolicy: always
        ports: [{containerport: 80}]
---
apiVersion: v1
kind: Endpoints
metadata: {name: web}
---
apiVersion: apps/v1beta1
kind: Deployment
metadata: {name: old}
`
	dir := filepath.Join(t.TempDir(), "saved")
	online := func(args ...string) (string, int) {
		var out, errs bytes.Buffer
		state := &command.State{Streams: command.Streams{In: strings.NewReader(manifest), Out: &out, Err: &errs}, Connection: flags.NewConnection()}
		state.Connection.Kubeconfig = cluster.Kubeconfig(t)
		state.Connection.CacheDir = t.TempDir()
		root := command.Root(state, &cobra.Command{Use: "anyctl"}, validate.Commands(state)...)
		root.SetArgs(append([]string{"validate"}, args...))
		err := root.ExecuteContext(t.Context())
		state.Connection.Close()
		code := exit.Report(&errs, err)
		require.Empty(t, errs.String())
		return out.String(), code
	}
	stdout, code := online("-f", "-", "--save-schemas", dir)
	assert.Equal(t, 1, code)
	assert.Equal(t, `STDIN:5: Deployment "web": spec.replicas: is "3", the schema says an integer (write 3 without quotes)
STDIN:12: Deployment "web": spec.template.spec.containers[0].imagePullPolicy: is "always", the schema says one of "Always", "IfNotPresent", "Never" (did you mean Always?)
STDIN:13: Deployment "web": spec.template.spec.containers[0].ports[0].containerPort: is missing, the schema requires it (add it: an integer)
STDIN:13: Deployment "web": spec.template.spec.containers[0].ports[0].containerport: the schema has no such field (did you mean containerPort?)
STDIN:15: Endpoints "web": warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice
STDIN:19: Deployment "old": no schema of the kind (there is Deployment of apps/v1)
not checked of Deployment of apps/v1, Endpoints of v1: the validation of the API server in Go: the schema has only fields, types and a part of the required fields and enums (a dry run has all)
3 objects: 1 not valid, 1 without a schema
`, strings.ReplaceAll(stdout, "warning: deprecated", ""))
	offline, _, code := run(t, manifest, "-f", "-", "--schemas", dir)
	assert.Equal(t, 1, code)
	assert.Equal(t, stdout, offline)

	stdout, code = online("--save-schemas", dir)
	assert.Equal(t, 0, code)
	assert.Empty(t, stdout)
}
