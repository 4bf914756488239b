package assign

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/unstructured"
)

func workload(t *testing.T) *unstructured.Object {
	t.Helper()
	obj, err := unstructured.Decode([]byte(`{"apiVersion":"apps/v1","kind":"Deployment",
		"metadata":{"name":"web","labels":{"app":"web"}},
		"spec":{"replicas":2,"template":{"spec":{"containers":[
			{"name":"web","image":"nginx:1","env":[{"name":"PORT","value":"80"}]},{"name":"side","image":"side:1"}]}}}}`))
	require.NoError(t, err)
	return obj
}

// unknownKind is a kind without a schema.
func unknownKind() *schema.Schema { return nil }

func TestParse_SplitsArguments(t *testing.T) {
	resources, assignments, err := Parse([]string{
		"deploy", "web", "spec.replicas=3", "spec.containers[name=web].image=nginx:2=x", `metadata.annotations["a=b"]=c`, "spec.paused-", "a[k=v].b-",
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"deploy", "web"}, resources)
	require.Len(t, assignments, 5)
	for i, want := range []struct {
		path  []string
		value string
	}{
		{[]string{"spec", "replicas"}, "3"},
		{[]string{"spec", "containers", "[name=web]", "image"}, "nginx:2=x"},
		{[]string{"metadata", "annotations", "a=b"}, "c"},
		{[]string{"spec", "paused"}, ""},
		{[]string{"a", "[k=v]", "b"}, ""},
	} {
		assert.Equal(t, want.path, assignments[i].path)
		assert.Equal(t, want.value, assignments[i].value)
		assert.Equal(t, i >= 3, assignments[i].isRemove)
	}
}

func TestParse_Errors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"spec.replicas=1", "deploy/web"}, "all resources must be specified before field changes: deploy/web"},
		{[]string{"deploy/web", "spec..replicas=1"}, "spec..replicas=1: "},
		{[]string{"deploy/web", ".=1"}, "the path is empty"},
		{[]string{"deploy/web", "spec[0=1"}, "all resources"},
	} {
		_, assignments, err := Parse(c.args)
		if err == nil {
			assert.Empty(t, assignments, "%q", c.args)
			continue
		}
		assert.ErrorContains(t, err, c.want, "%q", c.args)
	}
}

func TestAssignment_ApplyTypes(t *testing.T) {
	for _, c := range []struct {
		argument string
		path     []string
		want     any
	}{
		{"spec.replicas=3", []string{"spec", "replicas"}, int64(3)},
		{"spec.paused=true", []string{"spec", "paused"}, true},
		{"spec.ratio=0.5", []string{"spec", "ratio"}, 0.5},
		{"spec.name=yes", []string{"spec", "name"}, "yes"},
		{`spec.port="80"`, []string{"spec", "port"}, "80"},
		{`spec.map={"a":[1]}`, []string{"spec", "map"}, map[string]any{"a": []any{int64(1)}}},
		{"spec.template.spec.containers[name=web].image=nginx:2", []string{"spec", "template", "spec", "containers", "0", "image"}, "nginx:2"},
		{"spec.template.spec.containers[name=web].env[name=PORT].value=8080", []string{"spec", "template", "spec", "containers", "0", "env", "0", "value"}, "8080"},
		{"spec.template.spec.containers[1].image=a:1", []string{"spec", "template", "spec", "containers", "1", "image"}, "a:1"},
		{"metadata.labels.version=2", []string{"metadata", "labels", "version"}, "2"},
		{"data.debug=true", []string{"data", "debug"}, "true"},
		{"data.json={}", []string{"data", "json"}, "{}"},
	} {
		obj := workload(t)
		_, assignments, err := Parse([]string{c.argument})
		require.NoError(t, err)
		require.NoError(t, assignments[0].Apply(obj, false, unknownKind), c.argument)
		got, found, err := unstructured.Get[any](obj, c.path...)
		require.NoError(t, err)
		assert.True(t, found, c.argument)
		assert.Equal(t, c.want, got, c.argument)
	}
}

func TestAssignment_ApplyRemoves(t *testing.T) {
	obj := workload(t)
	_, assignments, err := Parse([]string{"spec.replicas-", "spec.template.spec.containers[name=side]-", "spec.none-"})
	require.NoError(t, err)
	for _, a := range assignments {
		require.NoError(t, a.Apply(obj, false, unknownKind))
	}
	_, found, _ := unstructured.Get[any](obj, "spec", "replicas")
	assert.False(t, found)
	containers, _, _ := unstructured.Get[[]any](obj, "spec", "template", "spec", "containers")
	assert.Len(t, containers, 1)
}

func TestAssignment_ApplyRejectsMissingElement(t *testing.T) {
	_, assignments, err := Parse([]string{"spec.template.spec.containers[name=wbe].image=nginx:2"})
	require.NoError(t, err)
	obj := workload(t)
	err = assignments[0].Apply(obj, false, unknownKind)
	require.EqualError(t, err, "spec.template.spec.containers[name=wbe].image: no element [name=wbe]: there are web, side (to append one, use --append)")
	require.NoError(t, assignments[0].Apply(obj, true, unknownKind))
	containers, _, _ := unstructured.Get[[]any](obj, "spec", "template", "spec", "containers")
	assert.Len(t, containers, 3)
}

func TestAssignment_ApplyTypesOfTheSchema(t *testing.T) {
	document, err := schema.ParseDocument([]byte(`{"components":{"schemas":{"K":{"type":"object","properties":{"spec":{"type":"object",
		"properties":{"version":{"type":"string"},"size":{"type":"integer"},"replicas":{"type":"integer"},
			"tags":{"type":"object","additionalProperties":{"type":"string"}}}}},
		"x-kubernetes-group-version-kind":[{"version":"v1","kind":"K"}]}}}}`))
	require.NoError(t, err)
	kind := func() *schema.Schema {
		s, err := document.Kind(runtimeschema.GroupVersionKind{Version: "v1", Kind: "K"})
		require.NoError(t, err)
		return s
	}
	for argument, want := range map[string]any{"spec.version=12": "12", "spec.size=12": int64(12), "spec.tags.debug=true": "true"} {
		obj := workload(t)
		_, assignments, err := Parse([]string{argument})
		require.NoError(t, err)
		require.NoError(t, assignments[0].Apply(obj, false, kind), argument)
		got, _, err := unstructured.Get[any](obj, assignments[0].path...)
		require.NoError(t, err)
		assert.Equal(t, want, got, argument)
	}
	for argument, want := range map[string]string{
		"spec.sise=1": `no field "sise": did you mean size?`, "spec.size=big": `spec.size: "big": the value is an integer`,
	} {
		_, assignments, err := Parse([]string{argument})
		require.NoError(t, err)
		assert.ErrorContains(t, assignments[0].Apply(workload(t), false, kind), want)
	}
}
