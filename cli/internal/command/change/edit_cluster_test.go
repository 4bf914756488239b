package change

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/internal/testing/cluster"
)

const editedDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  paused: true
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
`

// kubectl returns the start of a kubectl line for scripts.
func (e *env) kubectl(t *testing.T) string {
	t.Helper()
	return cluster.Kubectl(t) + " --kubeconfig " + cluster.Kubeconfig(t) + " -n " + e.namespace + " "
}

func TestEdit_OpensAgainAfterError(t *testing.T) {
	e := newEnv(t)
	e.apply(t, editedDeployment)
	t.Setenv("KUBE_EDITOR", script(t, `
if grep -q '^# \* spec.replicas: Invalid value' "$1"; then
	sed -i 's/replicas: -3/replicas: 3/' "$1"
else
	sed -i 's/replicas: 1/replicas: -3/' "$1"
fi`))
	r := e.run(t, "", "edit", "deploy/web")
	assert.Equal(t, result{"deployment.apps/web edited\n", "error: deployments.apps \"web\" was not valid\n", 0}, r)
	assert.Equal(t, int64(3), e.get(t, "deployments", "web", "spec.replicas"))
}

func TestEdit_KeepsFileWithoutValidChange(t *testing.T) {
	for _, c := range []struct{ name, edit, stored, reason string }{
		{"YAML", `sed -i 's/^spec:$/spec: [/' "$1"`, "spec: [", "The edited file failed validation: edited file: document 1, line "},
		{"field", `sed -i 's/replicas: 1/replica: 1/' "$1"`, "replica: 1", `deployments.apps "web" was not valid`},
		{"name", `sed -i 's/  name: web$/  name: other/' "$1"`, "name: other", "is not one of the edited objects (apiVersion, kind, namespace and name cannot be changed)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnv(t)
			e.apply(t, editedDeployment)
			t.Setenv("KUBE_EDITOR", script(t, c.edit))
			r := e.run(t, "", "edit", "deploy/web")
			assert.Equal(t, 1, r.code)
			assert.Contains(t, r.stderr, c.reason)
			assert.Contains(t, r.stderr, "error: Edit cancelled, no valid changes were saved.\n")
			match := regexp.MustCompile(`stored to "(.*)"`).FindStringSubmatch(r.stderr)
			require.NotNil(t, match, r.stderr)
			data, err := os.ReadFile(match[1])
			require.NoError(t, err)
			assert.Contains(t, string(data), c.stored)
			require.NoError(t, os.Remove(match[1]))
			assert.Equal(t, int64(1), e.get(t, "deployments", "web", "spec.replicas"))
		})
	}
}

func TestEdit_KeepsChangesOfOthers(t *testing.T) {
	e := newEnv(t)
	e.apply(t, editedDeployment)
	t.Setenv("KUBE_EDITOR", script(t, `
sed -i 's/web:1/web:2/' "$1"
`+e.kubectl(t)+`annotate deploy web other=1 >/dev/null`))
	r := e.run(t, "", "edit", "deploy/web")
	assert.Equal(t, result{"deployment.apps/web edited\n", "", 0}, r)
	assert.Equal(t, "example.com/web:2", e.get(t, "deployments", "web", "spec.template.spec.containers[name=web].image"))
	assert.Equal(t, "1", e.get(t, "deployments", "web", "metadata.annotations.other"))
}

func TestEdit_ListChangedByOthers(t *testing.T) {
	e := newEnv(t)
	e.apply(t, editedDeployment)
	t.Setenv("KUBE_EDITOR", script(t, `
grep -q 'was changed on the server' "$1" && exit 0
sed -i 's/web:1/web:2/' "$1"
`+e.kubectl(t)+`set image deploy web web=example.com/web:3 >/dev/null`))
	r := e.run(t, "", "edit", "deploy/web")
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stderr, "no valid changes were saved")
	assert.Equal(t, "example.com/web:3", e.get(t, "deployments", "web", "spec.template.spec.containers[name=web].image"))
	match := regexp.MustCompile(`stored to "(.*)"`).FindStringSubmatch(r.stderr)
	require.NotNil(t, match, r.stderr)
	require.NoError(t, os.Remove(match[1]))
}

func TestEdit_SeveralObjects(t *testing.T) {
	e := newEnv(t)
	e.apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: old}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {k: kept}\n")
	t.Setenv("KUBE_EDITOR", script(t, `sed -i 's/old/new/' "$1"`))
	r := e.run(t, "", "edit", "cm/a", "cm/b")
	assert.Equal(t, result{"configmap/b skipped\nconfigmap/a edited\n", "", 0}, r)
	assert.Equal(t, "new", e.get(t, "configmaps", "a", "data.k"))
}

func TestEdit_Subresource(t *testing.T) {
	e := newEnv(t)
	e.apply(t, editedDeployment)
	t.Setenv("KUBE_EDITOR", script(t, `sed -i 's/replicas: 1/replicas: 2/' "$1"`))
	r := e.run(t, "", "edit", "deploy/web", "--subresource=scale")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Equal(t, int64(2), e.get(t, "deployments", "web", "spec.replicas"))
}
