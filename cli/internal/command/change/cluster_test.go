package change

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/testing/client"
)

const settings = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: {app: web}}
data: {port: "80"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, labels: {app: web}}
`

func TestSet_FieldsOfAnyKind(t *testing.T) {
	e := newEnv(t)
	e.apply(t, settings+"---"+editedDeployment)
	r := e.run(t, "", "set", "deploy/web", "spec.replicas=3", "spec.template.spec.containers[name=web].image=example.com/web:2", "spec.paused-")
	assert.Equal(t, result{"deployment.apps/web updated\n", "", 0}, r)
	assert.Equal(t, int64(3), e.get(t, "deployments", "web", "spec.replicas"))
	assert.Equal(t, "example.com/web:2", e.get(t, "deployments", "web", "spec.template.spec.containers[0].image"))
	r = e.run(t, "", "set", "deploy/web", "spec.replicas=3")
	assert.Equal(t, result{"deployment.apps/web unchanged\n", "", 0}, r)
	r = e.run(t, "", "set", "cm", "-l", "app=web", "data.port=8080")
	assert.Equal(t, result{"configmap/a updated\nconfigmap/b updated\n", "", 0}, r)
	assert.Equal(t, "8080", e.get(t, "configmaps", "b", "data.port"))
	r = e.run(t, "", "set", "cm/a", "data.port=1", "--dry-run=server")
	assert.Equal(t, result{"configmap/a updated (server dry run)\n", "", 0}, r)
	assert.Equal(t, "8080", e.get(t, "configmaps", "a", "data.port"))
}

func TestSet_Errors(t *testing.T) {
	e := newEnv(t)
	e.apply(t, settings+"---"+editedDeployment)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"deploy/web", "spec.replica=3"}, "error: deployments.apps \"web\": field spec.replica: no field \"replica\": did you mean replicas?\n"},
		{[]string{"deploy/web", "spec.template.spec.containers[name=none].image=a"}, "no element [name=none]: there are web"},
		{[]string{"deploy/web", "spec.replicas=-1"}, "The Deployment \"web\" is invalid: spec.replicas: Invalid value: -1"},
		{[]string{"deploy/web"}, "error: at least one field update is required"},
		{[]string{"spec.replicas=1"}, "error: one or more resources must be specified"},
		{[]string{"deploy/none", "spec.replicas=1"}, "Error from server (NotFound): deployments.apps \"none\" not found\n"},
		{[]string{"cm/a", "cm/none", "data.port=1"}, "1 of 2 objects updated; not updated: "},
	} {
		r := e.run(t, "", append([]string{"set"}, c.args...)...)
		assert.Equal(t, 1, r.code, "%q", c.args)
		assert.Contains(t, r.stderr, c.want, "%q", c.args)
	}
}

func TestApply_ReportsWhatWasDone(t *testing.T) {
	e := newEnv(t)
	r := e.run(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_}\n---\nkind: [", "apply", "-f", "-")
	assert.Equal(t, 1, r.code)
	assert.Equal(t, "configmap/good serverside-applied\n", r.stdout)
	assert.Contains(t, r.stderr, "STDIN: document 3, line 10: the YAML is broken")
	assert.Contains(t, r.stderr, "1 of 3 objects applied; not applied: ConfigMap \"Bad_\" (STDIN: document 2, line 5), what follows the error in the file\n")
}

// definitionAndObject has an object in front of the definition of its kind.
const definitionAndObject = `
apiVersion: change.example.com/v1
kind: Twig
metadata: {name: first}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: twigs.change.example.com}
spec:
  group: change.example.com
  scope: Namespaced
  names: {kind: Twig, plural: twigs}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func TestApply_DefinitionBehindItsObjects(t *testing.T) {
	e := newEnv(t)
	r := e.run(t, definitionAndObject, "apply", "-f", "-")
	assert.Equal(t, result{"customresourcedefinition.apiextensions.k8s.io/twigs.change.example.com serverside-applied\ntwig.change.example.com/first serverside-applied\n", "", 0}, r)
	t.Cleanup(func() { // the definition and its object, from one file
		r := e.runIn(context.WithoutCancel(t.Context()), t, definitionAndObject, "delete", "-f", "-")
		assert.Equal(t, 0, r.code, r.stderr)
		assert.Regexp(t, `^twig.* deleted from \S+ namespace\ncustomresourcedefinition.* deleted\n$`, r.stdout)
	})
	twigs := client.Resource(t, e.client, "twigs").Namespace(e.namespace)

	e.apply(t, "apiVersion: change.example.com/v1\nkind: Twig\nmetadata: {name: first}\nstatus: {conditions: [{type: Ready, status: \"False\", reason: Growing}]}\n")
	r = e.run(t, "", "wait", "--for=ready", "twig/first", "--timeout=1s")
	assert.Equal(t, 1, r.code)
	assert.Regexp(t, `^error: timed out waiting for the condition on twigs/first: it is InProgress: .*Growing`, r.stderr)
	_, err := twigs.Patch(t.Context(), "first", types.MergePatchType, []byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), nil)
	require.NoError(t, err)
	r = e.run(t, "", "wait", "--for=ready", "twig/first")
	assert.Equal(t, result{"twig.change.example.com/first condition met\n", "", 0}, r)
}

func TestDelete_WaitsForFinalizers(t *testing.T) {
	e := newEnv(t)
	e.apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [change.example.com/hold]}\n")
	configMaps := client.Resource(t, e.client, "configmaps").Namespace(e.namespace)
	r := e.run(t, "", "delete", "cm/held", "--timeout=1s")
	assert.Equal(t, 1, r.code)
	assert.Regexp(t, `error: timed out waiting for the condition on configmaps/held: it still exists, being deleted since .*, with the finalizers change.example.com/hold\n$`, r.stderr)

	e.apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: waited, finalizers: [change.example.com/hold]}\n")
	done := make(chan result, 1)
	go func() { done <- e.run(t, "", "delete", "cm/waited") }()
	for waited := time.Duration(0); waited < 500*time.Millisecond; { // of waiting, after the request
		if e.get(t, "configmaps", "waited", "metadata.deletionTimestamp") != nil {
			waited += 10 * time.Millisecond
		}
		select {
		case early := <-done:
			t.Fatalf("delete returned before the finalizer was removed: %+v", early)
		case <-time.After(10 * time.Millisecond):
		}
	}
	_, err := configMaps.Patch(t.Context(), "waited", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil)
	require.NoError(t, err)
	assert.Equal(t, result{`configmap "waited" deleted from ` + e.namespace + " namespace\n", "", 0}, <-done)
}

func TestWait_EndsWithContext(t *testing.T) {
	e := newEnv(t)
	e.apply(t, settings)
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Second, func() { cancel(errors.New("interrupted by the test")) })
	r := e.runIn(ctx, t, "", "wait", "--for=condition=Never", "cm/a", "--timeout=1h")
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stderr, "interrupted by the test")
}

func TestRollout_UndoRestoresTemplate(t *testing.T) {
	e := newEnv(t)
	e.apply(t, editedDeployment)
	require.Equal(t, 0, e.run(t, "", "rollout", "resume", "deploy/web").code)
	require.Equal(t, 0, e.run(t, "", "rollout", "status", "deploy/web").code)
	require.Equal(t, 0, e.run(t, "", "set", "image", "deploy/web", "web=example.com/web:2").code)
	require.Equal(t, 0, e.run(t, "", "annotate", "deploy/web", "kubernetes.io/change-cause=second").code)
	require.Equal(t, 0, e.run(t, "", "rollout", "status", "deploy/web").code)
	r := e.run(t, "", "rollout", "undo", "deploy/web")
	assert.Equal(t, result{"deployment.apps/web rolled back\n", "", 0}, r)
	assert.Equal(t, "example.com/web:1", e.get(t, "deployments", "web", "spec.template.spec.containers[0].image"))
	assert.Nil(t, e.get(t, "deployments", "web", "spec.template.metadata.labels.pod-template-hash"))
	require.Equal(t, 0, e.run(t, "", "rollout", "status", "deploy/web").code)
	r = e.run(t, "", "rollout", "history", "deploy/web")
	assert.Regexp(t, `^deployment.apps/web \nREVISION +CHANGE-CAUSE\n2 +second\n3 +<none>\n\n$`, r.stdout)
}

func TestApply_EndsWhileItReadsInput(t *testing.T) {
	e := newEnv(t)
	in, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan result, 1)
	go func() { done <- e.runWith(ctx, t, in, "apply", "-f", "-") }()
	_, err := io.WriteString(write, "kind: ConfigMap\n") // returns when it is read
	require.NoError(t, err)
	cancel()
	assert.Equal(t, 1, (<-done).code)
	require.NoError(t, write.Close())
}
