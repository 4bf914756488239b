package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
)

const manifest = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, labels: {app: shop}}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: report, image: report}]}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prices, labels: {app: shop}}
`

func TestShopctl_Commands(t *testing.T) {
	namespace := client.NewNamespace(t, client.Connect(t, "admin"))
	program := filepath.Join(t.TempDir(), "shopctl")
	output, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", output)
	cacheDir := t.TempDir()
	for _, line := range []struct {
		args, want string
		code       int
	}{
		{"apply -f -", "configmap/prices serverside-applied\ncronjob.batch/report serverside-applied\n", 0},
		{"get cm,cj -l app=shop -o name", "configmap/prices\ncronjob.batch/report\n", 0},
		{"get cj report --no-headers -o custom-columns=NAME:.metadata.name", "report\n", 0},
		{"get secrets", "No resources found in " + namespace + " namespace.\n", 0},
		{"get nonsense", "error: the server doesn't have a resource type \"nonsense\"\n", 1},
		{"wait cm/prices --for=jsonpath={.metadata.name}=prices", "configmap/prices condition met\n", 0},
		{"suspend cj -l app=shop --dry-run=server", "cronjob.batch/report suspended (server dry run)\n", 0},
		{"suspend cj/report", "cronjob.batch/report suspended\n", 0},
		{"get cj report -o jsonpath={.spec.suspend}", "true", 0},
		{"suspend cj/none cj/report", "cronjob.batch/report suspended\nError from server (NotFound): cronjobs.batch \"none\" not found\n", 1},
		{"suspend", "error: You must provide one or more resources by argument or filename.", 1},
		{"describe cj/report", "error: unknown command \"describe\" for \"shopctl\"\n", 1},
	} {
		args := append([]string{"--kubeconfig", cluster.Kubeconfig(t), "-n", namespace, "--cache-dir", cacheDir}, strings.Fields(line.args)...)
		command := exec.Command(program, args...)
		command.Stdin = strings.NewReader(manifest)
		output, err := command.CombinedOutput()
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			err = nil
		}
		require.NoError(t, err)
		assert.Equal(t, line.code, command.ProcessState.ExitCode(), line.args)
		if line.code == 1 {
			assert.Contains(t, string(output), line.want, line.args)
		} else {
			assert.Equal(t, line.want, string(output), line.args)
		}
	}
}
