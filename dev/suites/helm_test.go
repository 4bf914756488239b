package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const helmModule = "helm.sh/helm/v4"

// chart has the files of a chart with a hook.
var chart = map[string]string{
	"Chart.yaml":  "{apiVersion: v2, name: shop, version: 1.0.0}\n",
	"values.yaml": "{color: red, replicas: 1}\n",
	"templates/objects.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-settings"}
data: {color: "{{ .Values.color }}", revision: "{{ .Release.Revision }}"}
---
apiVersion: v1
kind: Service
metadata: {name: "{{ .Release.Name }}"}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {color: "{{ .Values.color }}"}}
    spec: {containers: [{name: web, image: "example.com/web:1", ports: [{containerPort: 8080}]}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Release.Name }}-migrate", annotations: {helm.sh/hook: "post-install,pre-upgrade,post-rollback"}}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: migrate, image: "example.com/migrate:1"}]}
`,
}

// TestCopy_HelmAsOnCluster installs a release in a cluster, and compares Helm's commands in the cluster and in a copy of it.
func TestCopy_HelmAsOnCluster(t *testing.T) {
	if os.Getenv("ANYKIND_REQUIRE_SANDBOX") != "1" {
		t.Skip("compiles Helm: run make test MODULES=dev/suites")
	}
	r, err := newRunner(t.Context(), t.Logf)
	require.NoError(t, err)
	p := &programs{dir: t.TempDir(), kubectl: filepath.Join(r.assets, "kubectl")}
	buildUpstream(t, p.dir, helmModule, "cmd/helm", true)
	buildOwn(t, p.dir, "apitest", "apitest")
	buildOwn(t, p.dir, "apitest/cel", "anyctl-copy")
	for name, text := range chart {
		path := filepath.Join(p.dir, "shop", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}

	cluster := server(t, p.dir, "go", "run", "-C", filepath.Join(repository, "sandbox"), ".", "exec", "--components", "etcd,kube-apiserver,kube-controller-manager,kube-scheduler,nodes", "--")
	p.run(t, cluster, "helm install web shop --create-namespace")
	p.run(t, cluster, "anyctl-copy save --secret-data cluster.copy")
	copied := server(t, p.dir, filepath.Join(p.dir, "apitest"), "-hide-warnings", "-copy", "cluster.copy", "-controllers", "exec", "--")
	for _, line := range []string{
		"list", "status web", "get manifest web", "get hooks web", "history web",
		"upgrade web shop --set color=blue,replicas=2", "get values web", "rollback web 1", "history web", "list", "uninstall web", "list",
	} {
		want := p.run(t, cluster, "helm "+line)
		got := p.run(t, copied, "helm "+line)
		assert.Equal(t, want, got, "helm %s: output in the cluster (expected) and in the copy (actual)", line)
		assert.Equal(t, p.objects(t, cluster), p.objects(t, copied), "helm %s: objects in the cluster (expected) and in the copy (actual)", line)
	}
}

// programs has the folder of the programs and of the chart, and the path of kubectl.
type programs struct{ dir, kubectl string }

// run runs a line with a program of the folder in namespace shop, and returns its output without times.
func (p *programs) run(t *testing.T, kubeconfig, line string) string {
	t.Helper()
	words := strings.Fields(line)
	command := exec.CommandContext(t.Context(), filepath.Join(p.dir, words[0]), words[1:]...)
	command.Dir = p.dir
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HELM_NAMESPACE=shop", "HOME="+p.dir)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s: %s", line, output)
	text := masked(string(output))
	if words[1] == "status" { // Helm prints the kinds in a random order
		lines := strings.Split(text, "\n")
		slices.Sort(lines)
		text = strings.Join(lines, "\n")
	}
	return text
}

var (
	times   = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z| [+-]\d{4} UTC)? *|\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4} *|\b\d+[smh]\b`)
	heading = regexp.MustCompile(`\bUPDATED +`)
	uids    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// masked replaces times and UIDs. The heading UPDATED is as wide as a time, whose fraction has no trailing zeros.
func masked(text string) string {
	text = heading.ReplaceAllString(text, "UPDATED ")
	return uids.ReplaceAllString(times.ReplaceAllString(text, "TIME "), "UID")
}

// objects returns the objects of the namespace without their status, times and UIDs. Of the managers of fields, Helm is left.
func (p *programs) objects(t *testing.T, kubeconfig string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), p.kubectl, "get", "deployments,services,configmaps,jobs,secrets", "-n", "shop", "-o", "json", "--show-managed-fields")
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+p.dir)
	output, err := command.Output()
	require.NoError(t, err)
	var list struct{ Items []map[string]any }
	require.NoError(t, json.Unmarshal(output, &list))
	for _, item := range list.Items {
		delete(item, "status")
		metadata := item["metadata"].(map[string]any)
		delete(metadata, "resourceVersion")
		metadata["managedFields"] = slices.DeleteFunc(metadata["managedFields"].([]any), func(entry any) bool { return entry.(map[string]any)["manager"] != "helm" })
		labels, _ := metadata["labels"].(map[string]any)
		delete(labels, "modifiedAt")
		annotations, _ := metadata["annotations"].(map[string]any)
		delete(annotations, "deployment.kubernetes.io/revision") // its controller may write it later
		if item["kind"] == "Secret" {
			delete(item, "data") // compressed, with times: helm prints it
		}
	}
	text, err := json.MarshalIndent(list.Items, "", " ")
	require.NoError(t, err)
	return masked(string(text))
}

// server starts a program that starts a server and runs a command with its kubeconfig. It returns the path of the kubeconfig. The
// server runs until the end of the test.
func server(t *testing.T, dir string, arguments ...string) (kubeconfig string) {
	t.Helper()
	arguments = append(arguments, "sh", "-c", `echo "$KUBECONFIG"; exec cat`)
	command := exec.Command(arguments[0], arguments[1:]...) // ends with its standard input
	var log bytes.Buffer
	command.Stderr = &log
	if arguments[0] != "go" {
		command.Dir = dir
	}
	stdin, err := command.StdinPipe()
	require.NoError(t, err)
	stdout, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		assert.NoError(t, stdin.Close())
		assert.NoError(t, command.Wait(), "%s", &log)
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}
