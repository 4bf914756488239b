package dynamic_test

import (
	"context"
	"testing"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestStatusIsWrittenThroughItsSubresourceOnly(t *testing.T) {
	client, namespace := newNamespace(t)
	of := sharedWidgets(t, client, namespace)
	created, err := of.Create(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "one"}, "spec": map[string]any{"a": "1"}, "status": map[string]any{"phase": "lost"},
	}}, nil)
	require.NoError(t, err)
	assert.NotContains(t, created.Object, "status")

	created.Object["spec"], created.Object["status"] = map[string]any{"a": "lost"}, map[string]any{"phase": "Ready"}
	updated, err := of.Sub("status").Update(t.Context(), created, nil)
	require.NoError(t, err)
	assert.Equal(t, "Ready", field(t, updated, "status", "phase"))
	assert.Equal(t, "1", field(t, updated, "spec", "a"))

	_, err = of.Sub("status").Patch(t.Context(), "one", types.MergePatchType, []byte(`{"status":{"phase":"Done"}}`), nil)
	require.NoError(t, err)
	_, err = of.Sub("status").Apply(t.Context(), &unstructured.Object{Object: map[string]any{
		"metadata": map[string]any{"name": "one"}, "status": map[string]any{"note": "applied"},
	}}, &metav1.ApplyOptions{FieldManager: "test"})
	require.NoError(t, err)
	read, err := of.Sub("status").Get(t.Context(), "one", nil)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"phase": "Done", "note": "applied"}, read.Object["status"])
}

func TestScaleIsAnObjectOfItsOwnKind(t *testing.T) {
	client, namespace := newNamespace(t)
	deployments := resource(t, client, "deploy").In(namespace)
	_, err := deployments.Create(t.Context(), deployment("web"), nil)
	require.NoError(t, err)
	// The deployment's controller writes, too.
	require.NoError(t, dynamic.RetryOnConflict(t.Context(), func(ctx context.Context) error {
		scale, err := deployments.Sub("scale").Get(ctx, "web", nil)
		require.NoError(t, err)
		assert.Equal(t, "autoscaling/v1, Kind=Scale", scale.GroupVersionKind().String())
		require.NoError(t, setReplicas(scale, 2))
		_, err = deployments.Sub("scale").Update(ctx, scale, nil)
		return err
	}))
	read, err := deployments.Get(t.Context(), "web", nil)
	require.NoError(t, err)
	replicas, _, err := unstructured.Get[int64](read, "spec", "replicas")
	require.NoError(t, err)
	assert.Equal(t, int64(2), replicas)
}

func setReplicas(obj *unstructured.Object, replicas int64) error {
	spec, _, err := unstructured.Get[map[string]any](obj, "spec")
	if err != nil {
		return err
	}
	spec["replicas"] = replicas
	obj.Object["spec"] = spec
	return nil
}

func TestASubresourceThatOnlyCreatesIsPostedToItsObject(t *testing.T) {
	client, namespace := newNamespace(t)
	accounts := resource(t, client, "sa").In(namespace)
	_, err := accounts.Create(t.Context(), named("robot", nil), nil)
	require.NoError(t, err)
	token, err := accounts.Sub("token").Create(t.Context(), named("robot", map[string]any{"expirationSeconds": int64(600)}), nil)
	require.NoError(t, err)
	assert.NotEmpty(t, field(t, token, "status", "token"))

	pods := resource(t, client, "pods").In(namespace)
	pod := named("web", map[string]any{
		"serviceAccountName": "robot", "nodeName": "nowhere", "terminationGracePeriodSeconds": int64(0),
		"containers": []any{map[string]any{"name": "web", "image": "web:1"}},
	})
	_, err = pods.Create(t.Context(), pod, nil)
	require.NoError(t, err)
	_, err = pods.Sub("eviction").Create(t.Context(), named("web", nil), nil)
	require.NoError(t, err)
	_, err = pods.Get(t.Context(), "web", nil)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// named is an object of the kind that it is sent to.
func named(name string, spec map[string]any) *unstructured.Object {
	obj := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}}}
	if spec != nil {
		obj.Object["spec"] = spec
	}
	return obj
}
