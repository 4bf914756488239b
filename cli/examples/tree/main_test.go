package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTree_ShowsDependents(t *testing.T) {
	admin := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, admin)
	configMaps := client.Resource(t, admin, "configmaps").Namespace(namespace)
	create := func(name string, owners ...metav1.OwnerReference) *unstructured.Object {
		obj := &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}}}
		obj.SetOwnerReferences(owners)
		created, err := configMaps.Create(t.Context(), obj, nil)
		require.NoError(t, err)
		return created
	}
	shop := create("shop")
	create("prices", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "shop", UID: shop.GetUID()})
	tree := client.Program(t, namespace)
	output, err := tree(t.Context(), "", "cm/shop")
	require.NoError(t, err)
	assert.Equal(t, []string{"ConfigMap/shop", "Current"}, strings.Fields(strings.Split(output, "\n")[1])[:2])
	assert.Contains(t, output, "└─ConfigMap/prices ")
	_, err = tree(t.Context(), "", "cm/none")
	require.ErrorContains(t, err, `configmaps "none" not found`)
}
