package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const operatorModule = "github.com/prometheus-operator/prometheus-operator"

// monitored are the objects of the operator's cluster.
const monitored = `
apiVersion: v1
kind: Namespace
metadata: {name: monitoring}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: monitoring}
---
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: web, namespace: monitoring}
spec: {replicas: 2, serviceAccountName: prometheus, serviceMonitorSelector: {}}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: web, namespace: monitoring}
spec: {selector: {matchLabels: {app: web}}, endpoints: [{port: http}]}
`

// TestRehearsal_PrometheusOperator runs an operator as published against a copy, and compares two runs of it.
func TestRehearsal_PrometheusOperator(t *testing.T) {
	if os.Getenv("ANYKIND_REQUIRE_SANDBOX") != "1" {
		t.Skip("compiles prometheus-operator: run make test MODULES=dev/suites")
	}
	dir := t.TempDir()
	definitions := filepath.Join(buildUpstream(t, dir, operatorModule, "cmd/operator", false), "example", "prometheus-operator-crd")
	buildOwn(t, dir, "apitest", "apitest")
	buildOwn(t, dir, "apitest/cel", "anyctl-copy")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	script := fmt.Sprintf(`D=$(dirname "$KUBECONFIG")
exec %s/operator --apiserver="$KUBERNETES_MASTER" --ca-file="$D/ca.crt" --cert-file="$D/tls.crt" --key-file="$D/tls.key" --web.listen-address=%s`, dir, address)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "operator.sh"), []byte(script), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "objects.yaml"), []byte(monitored), 0o600))

	command := exec.CommandContext(t.Context(), filepath.Join(dir, "apitest"), "-hide-warnings", "-f", definitions, "-f", filepath.Join(dir, "objects.yaml"), "exec", "--",
		filepath.Join(dir, "anyctl-copy"), "rehearse", "-o", "json", "--baseline", "sh "+dir+"/operator.sh", "--", "sh", dir+"/operator.sh")
	var output, log bytes.Buffer
	command.Stdout = &output
	command.Stderr = &log
	require.NoError(t, command.Run(), "%s", &log)
	var report struct {
		Outcome     string
		Changes     []struct{ Action, Object json.RawMessage }
		Differences []json.RawMessage
	}
	require.NoError(t, json.Unmarshal(output.Bytes(), &report))
	assert.Equal(t, "quiet", report.Outcome, "%s", &log)
	assert.Empty(t, report.Differences, "two runs of a version are equal")
	var changes []string
	for _, change := range report.Changes {
		changes = append(changes, string(change.Action)+" "+string(change.Object))
	}
	assert.Len(t, changes, 7, "%s", changes)
	assert.Contains(t, fmt.Sprint(changes), `prometheus-web-rulefiles-0`)
	assert.Contains(t, fmt.Sprint(changes), `StatefulSet`)
}

// buildUpstream builds a program of a module of versions.txt into dir, and returns the folder of the module's source. With
// sharesVersions the program has at least the workspace's versions of its requirements.
func buildUpstream(t *testing.T, dir, module, program string, sharesVersions bool) (source string) {
	t.Helper()
	versions, err := parseVersions(versionList)
	require.NoError(t, err)
	source, err = download(t.Context(), module, versions[module])
	require.NoError(t, err)
	user, err := os.UserCacheDir()
	require.NoError(t, err)
	name := path.Base(program)
	folder := filepath.Join(user, "anykind", "suites", "program-"+name)
	require.NoError(t, os.MkdirAll(folder, 0o755))
	text := fmt.Sprintf("module anykind.test/program\n\ngo 1.26.0\n\nrequire %s %s\n", module, versions[module].Version)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte(text), 0o600))
	if sharesVersions {
		root, err := filepath.Abs(repository)
		require.NoError(t, err)
		workspace, err := workspaceGoMod(t.Context(), root)
		require.NoError(t, err)
		require.NoError(t, requireWorkspace(t.Context(), folder, workspace))
	}
	_, err = goCommand(t.Context(), folder, "build", "-o", filepath.Join(dir, name), module+"/"+program)
	require.NoError(t, err)
	return source
}

// buildOwn builds a program of a module of this repository into dir.
func buildOwn(t *testing.T, dir, module, program string) {
	t.Helper()
	_, err := goCommandWith(t.Context(), filepath.Join(repository, module), []string{"GOWORK="}, "build", "-o", filepath.Join(dir, program), "./cmd/"+program)
	require.NoError(t, err)
}
