package fieldowner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/unstructured"
)

const deployment = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "finalizers": ["b", "a"],
	"annotations": {"example.com/a": "1"},
	"managedFields": [
		{"manager": "kubectl", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": {
			"f:metadata": {"f:annotations": {"f:example.com/a": {}}, "f:finalizers": {"v:\"a\"": {}}},
			"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"app\"}": {".": {}, "f:name": {}, "f:image": {}, "f:args": {},
				"f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}}}}},
		{"manager": "hpa", "operation": "Update", "subresource": "scale", "apiVersion": "autoscaling/v1", "fieldsType": "FieldsV1", "fieldsV1": {
			"f:spec": {"f:replicas": {}}}},
		{"manager": "sidecar", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {
			"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"app\"}": {".": {}}, "k:{\"name\":\"a b\"}": {".": {}, "f:image": {}}}}}}}}
	]},
	"spec": {"replicas": 3, "paused": false, "template": {"spec": {"containers": [
		{"name": "a b", "image": "x"},
		{"name": "app", "image": "web:1", "args": ["-v", "-x"], "ports": [{"containerPort": 80}]}]}}}}`

func TestOwners(t *testing.T) {
	obj, err := unstructured.Decode([]byte(deployment))
	require.NoError(t, err)
	const app = "spec.template.spec.containers[name=app]"
	for path, want := range map[string][]string{
		"spec.replicas":                             {"kubectl spec.replicas", "hpa spec.replicas"},
		app + ".image":                              {"kubectl " + app + ".image"},
		"spec.template.spec.containers[1].image":    {"kubectl " + app + ".image"},
		"spec.template.spec.containers[0].image":    {`sidecar spec.template.spec.containers[name="a b"].image`},
		app + ".args[1]":                            {"kubectl " + app + ".args"},
		app + ".ports[containerPort=80]":            {"kubectl " + app + ".ports[containerPort=80,protocol=TCP].containerPort"},
		"spec.paused":                               nil,
		`metadata.annotations["example.com/a"]`:     {`kubectl metadata.annotations["example.com/a"]`},
		"metadata.finalizers[1]":                    {"kubectl metadata.finalizers[1]"},
		"metadata.finalizers[0]":                    nil,
		`spec.template.spec.containers[name="a b"]`: {`sidecar spec.template.spec.containers[name="a b"].image`},
		"metadata":                                  {`kubectl metadata.annotations["example.com/a"]`, "kubectl metadata.finalizers[1]"},
		"spec.template.spec.containers[name=app]":   {"kubectl " + app + ".args", "kubectl " + app + ".image", "kubectl " + app + ".name", "kubectl " + app + ".ports[containerPort=80,protocol=TCP].containerPort", "sidecar " + app},
	} {
		t.Run(path, func(t *testing.T) {
			steps, err := unstructured.ParsePath(path)
			require.NoError(t, err)
			owners, err := Owners(obj, steps)
			require.NoError(t, err)
			var got []string
			for _, owner := range owners {
				got = append(got, owner.Manager+" "+owner.Field)
				parsed, err := unstructured.ParsePath(owner.Field)
				require.NoError(t, err)
				_, found, err := unstructured.Get[any](obj, parsed...)
				if assert.NoError(t, err) && owner.Field != app+".ports[containerPort=80,protocol=TCP].containerPort" { // the protocol is defaulted
					assert.True(t, found, owner.Field)
				}
			}
			assert.ElementsMatch(t, want, got)
		})
	}
}

func TestOwners_Details(t *testing.T) {
	obj, err := unstructured.Decode([]byte(deployment))
	require.NoError(t, err)
	owners, err := Owners(obj, []string{"spec", "replicas"})
	require.NoError(t, err)
	require.Len(t, owners, 2)
	assert.Equal(t, "Apply", owners[0].Operation)
	assert.Equal(t, 2026, owners[0].Time.Year())
	assert.Equal(t, "scale", owners[1].Subresource)
	assert.True(t, owners[1].Time.IsZero())

	all, err := Owners(obj, nil)
	require.NoError(t, err)
	assert.Len(t, all, 11-1)
	_, err = Owners(obj, []string{"spec", "replica"})
	require.ErrorContains(t, err, `Deployment "web" has no field spec.replica`)
}
