package dynamic_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

const definitionAndObjects = `
apiVersion: v1
kind: List
items:
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: trinkets.GROUP, namespace: dropped}
  spec:
    group: GROUP
    scope: Namespaced
    names: {plural: trinkets, singular: trinket, kind: Trinket, listKind: TrinketList}
    versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: GROUP/v1
kind: TrinketList
items:
- {metadata: {name: a, namespace: NAMESPACE}, spec: {size: 1}}
- {metadata: {name: b, namespace: NAMESPACE}, spec: {size: 2}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: page, namespace: NAMESPACE}
data: {title: hello}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAMESPACE, namespace: NAMESPACE}
rules: []
`

// TestClient_ForObjectsDefinitionInStream applies a definition, its objects and others of one stream; kubectl apply -f of
// the same file then changes nothing.
func TestClient_ForObjectsDefinitionInStream(t *testing.T) {
	client, namespace := newNamespace(t)
	group := namespace + ".example.com"
	text := strings.NewReplacer("GROUP", group, "NAMESPACE", namespace).Replace(definitionAndObjects)
	removed(t, resource(t, client, "crd"), "trinkets."+group)
	removed(t, resource(t, client, "clusterroles"), namespace)

	var names, warnings []string
	for found, err := range client.ForObjects(t.Context(), documents(text)) {
		require.NoError(t, err)
		if found.Warning != "" {
			warnings = append(warnings, found.Warning)
		}
		applied, err := found.Resource.Apply(t.Context(), found.Object, &metav1.ApplyOptions{FieldManager: "kubectl"})
		require.NoError(t, err)
		names = append(names, applied.GetKind()+" "+applied.GetNamespace()+"/"+applied.GetName())
	}
	assert.Equal(t, []string{
		"CustomResourceDefinition /trinkets." + group, "Trinket " + namespace + "/a", "Trinket " + namespace + "/b", "ConfigMap " + namespace + "/page", "ClusterRole /" + namespace,
	}, names)
	assert.Len(t, warnings, 2)

	file := filepath.Join(t.TempDir(), "stream.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	command := exec.CommandContext(t.Context(), cluster.Kubectl(t), "--kubeconfig", cluster.Kubeconfig(t), "apply", "--server-side", "--field-manager", "kubectl", "-f", file, "-o", "name")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.Equal(t, []string{
		"customresourcedefinition.apiextensions.k8s.io/trinkets." + group, "trinket." + group + "/a", "trinket." + group + "/b", "configmap/page", "clusterrole.rbac.authorization.k8s.io/" + namespace,
	}, strings.Fields(string(output)))
	a, err := resource(t, client, "trinkets."+group).Namespace(namespace).Get(t.Context(), "a", nil)
	require.NoError(t, err)
	assert.Equal(t, int64(1), a.GetGeneration(), "kubectl has changed it")
}

func TestClient_ForObjectsDefinitionNotCreated(t *testing.T) {
	client, namespace := newNamespace(t)
	text := strings.NewReplacer("GROUP", namespace+".example.com", "NAMESPACE", namespace).Replace(definitionAndObjects)
	var last error
	count := 0
	for found, err := range client.ForObjects(t.Context(), documents(text)) {
		if last = err; found != nil {
			count++
		}
	}
	require.ErrorContains(t, last, "is in front of it, but has not been created")
	assert.Equal(t, 1, count)
}

// TestTables_RowsEqualList reads tables in pages of two and compares their objects with those of List.
func TestTables_RowsEqualList(t *testing.T) {
	client, namespace := newNamespace(t)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		_, err := configMaps.Create(t.Context(), configMap(name, map[string]any{"n": name}), nil)
		require.NoError(t, err)
	}
	want := map[string]*unstructured.Object{}
	for obj, err := range configMaps.List(t.Context(), nil) {
		require.NoError(t, err)
		want[obj.GetName()] = obj
	}
	pages := 0
	got := map[string]*unstructured.Object{}
	paged := configMaps.WithPageOptions(&dynamic.PageOptions{OnPage: func(metav1.ListMeta) { pages++ }})
	for row, err := range paged.Tables(metav1.IncludeObject).List(t.Context(), &metav1.ListOptions{Limit: 2}) {
		require.NoError(t, err)
		assert.Equal(t, row.Object.GetName(), row.Cells[0])
		assert.Equal(t, "Name", row.Columns[0].Name)
		got[row.Object.GetName()] = row.Object
	}
	assert.Equal(t, want, got)
	assert.GreaterOrEqual(t, pages, 3)
}
