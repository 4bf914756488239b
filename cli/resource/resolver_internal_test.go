package resource

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/unstructured/manifest"
)

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: leaves.manifest.example.com}
spec:
  group: manifest.example.com
  scope: Cluster
  names: {kind: Leaf, plural: leaves}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

func TestResolver_KindsOfTheSameManifest(t *testing.T) {
	c := client.Connect(t, "admin")
	client.DeleteAtEnd(t, client.Resource(t, c, "customresourcedefinitions"), "leaves.manifest.example.com")
	objects, err := manifest.Decode("all.yaml", strings.NewReader(
		"apiVersion: manifest.example.com/v1\nkind: Leaf\nmetadata: {name: a}\n---\n"+"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n---"+definition))
	require.NoError(t, err)
	resolver := newResolver(c.WithDefaults(&dynamic.Defaults{FieldManager: "test"}), "", "default")
	var resources []string
	ordered, err := InstallOrder(objects, "default")
	require.NoError(t, err)
	for _, obj := range ordered {
		found, err := resolver.Resolve(t.Context(), obj)
		require.NoError(t, err)
		resources = append(resources, found.Resource.String())
		if obj.GetKind() != "ConfigMap" {
			_, err = found.Resource.Apply(t.Context(), found.Object, nil)
			require.NoError(t, err)
		}
	}
	assert.Equal(t, []string{"customresourcedefinitions.apiextensions.k8s.io", "configmaps", "leaves.manifest.example.com"}, resources)
}

func TestResolver_Errors(t *testing.T) {
	c := client.Connect(t, "admin")
	for _, test := range []struct{ manifest, want string }{
		{
			"apiVersion: none.example.com/v1\nkind: Tree\nmetadata: {name: a}\n",
			"resource mapping not found for name: \"a\" namespace: \"\" from \"all.yaml\": no matches for kind \"Tree\" in version \"none.example.com/v1\"\n" +
				"all.yaml: document 1, line 1: ",
		},
		{
			strings.ReplaceAll(definition, "manifest.", "absent.") + "---\napiVersion: absent.example.com/v1\nkind: Leaf\nmetadata: {name: a}\n",
			`all.yaml: document 2, line 12: find the resource of Leaf "a": its CustomResourceDefinition "leaves.absent.example.com" is in front of it, but has not been created`,
		},
	} {
		objects, err := manifest.Decode("all.yaml", strings.NewReader(test.manifest))
		require.NoError(t, err)
		resolver := newResolver(c, "", "default")
		for _, obj := range objects {
			_, err = resolver.Resolve(t.Context(), obj)
		}
		assert.ErrorContains(t, err, test.want)
	}
}

func TestInstallOrder_KeepsPositions(t *testing.T) {
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
	objects, err := manifest.Decode("all.yaml", strings.NewReader(configMap+"a}\n---\n"+configMap+"b}\n---\n"+namespace))
	require.NoError(t, err)
	ordered, err := InstallOrder(objects, "shop")
	require.NoError(t, err)
	var positions []string
	for _, obj := range ordered {
		positions = append(positions, obj.GetName()+" in "+obj.Position())
	}
	assert.Equal(t, []string{"shop in all.yaml: document 3, line 9", "a in all.yaml: document 1, line 1", "b in all.yaml: document 2, line 5"}, positions)

	objects[0].SetAnnotations(map[string]string{"config.kubernetes.io/depends-on": "/namespaces/shop/ConfigMap/a"})
	_, err = InstallOrder(objects, "shop")
	assert.ErrorContains(t, err, `dependency cycle: ConfigMap "a" → ConfigMap "a"`)
}
