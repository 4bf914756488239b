package applyset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

func TestMigrateFields_ObjectsOfKubectl(t *testing.T) {
	e := newEnvironment(t)
	configMaps := client.Resource(t, e.Client, "configmaps").Namespace(e.namespace)
	e.kubectl(t, e.namespace, "apply -f -", two)
	live := e.configMap(t, "a")
	e.kubectl(t, e.namespace, "label configmap a changed=meanwhile", "") // the first patch is a conflict
	stored, reason, err := applyset.MigrateFields(t.Context(), e.Client, live, "shopctl", applyset.Managers("kubectl-client-side-apply"))
	require.NoError(t, err)
	assert.Empty(t, reason)
	require.NotNil(t, stored)
	assert.Equal(t, "meanwhile", stored.GetLabels()["changed"])
	assert.Empty(t, stored.GetAnnotations(), "the annotation has no owner left")

	obj, err := unstructured.Decode([]byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "x"}}`))
	require.NoError(t, err)
	_, err = configMaps.Apply(t.Context(), obj, &metav1.ApplyOptions{FieldManager: "shopctl"})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"a": "x"}, e.data(t, "a"), "the removed field has left the object")

	again, _, err := applyset.MigrateFields(t.Context(), e.Client, e.configMap(t, "a"), "shopctl", applyset.Managers("kubectl-client-side-apply"))
	require.NoError(t, err)
	assert.Nil(t, again)
}

func TestMigrateFields_Missing(t *testing.T) {
	e := newEnvironment(t)
	e.kubectl(t, e.namespace, "apply -f -", two)
	live := e.configMap(t, "a")
	e.kubectl(t, e.namespace, "delete configmap a", "")
	_, _, err := applyset.MigrateFields(t.Context(), e.Client, live, "shopctl", applyset.KubectlManagers)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	assert.ErrorContains(t, err, `move the fields of configmaps "a" to "shopctl": `)
}
