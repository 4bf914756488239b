package schema_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/internal/testing/corpus"
	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/unstructured"
)

// TestSchema_Skeleton_AcceptedByTheServer creates a skeleton of every kind in a dry run.
func TestSchema_Skeleton_AcceptedByTheServer(t *testing.T) {
	c := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, c)
	schemas := schema.New(connect(t), nil)
	resources, err := c.PreferredResources(t.Context(), &discovery.ResourceFilter{Verbs: []string{"create"}})
	require.NoError(t, err)
	count := 0
	for _, resource := range resources {
		api := resource.APIResource()
		if !strings.Contains(strings.Join(api.Verbs, " "), "list") {
			continue // reviews, which are not stored
		}
		s, err := schemas.Kind(t.Context(), api.GVK)
		require.NoError(t, err)
		name, isSpecial := skeletonNames[api.GVK.Kind]
		if !isSpecial {
			name = "example"
		}
		skeleton := s.Skeleton(api.GVK, name)
		err = createDry(t, resource, namespace, skeleton)
		reason, isRejected := rejectedSkeletons[api.GVK.Kind]
		if api.GVK.Kind == "EndpointSlice" && cluster.Version(t).Minor() < 36 {
			isRejected = true
			reason = "its schema permits an endpoint without addresses"
		}
		if isRejected {
			assert.Error(t, err, "%s: %s", api.GVR, reason)
			continue
		}
		assert.NoError(t, err, "%s\n%s", api.GVR, skeleton)
		count++
	}
	assert.Greater(t, count, 40)
}

// skeletonNames are the names of kinds that have rules for them.
var skeletonNames = map[string]string{
	"APIService": "v1.metrics.example.com", "CustomResourceDefinition": "examples.shop.example.com", "IPAddress": "192.0.2.1",
}

// rejectedSkeletons are kinds of which no skeleton is valid, with the reason.
var rejectedSkeletons = map[string]string{
	"Event":                     "its namespace is that of the object",
	"CertificateSigningRequest": "it has a request that is signed with a key",
	"PodCertificateRequest":     "it has a request that is signed with a key", // served from 1.37 on, as ClusterTrustBundle
	"ClusterTrustBundle":        "it has certificates",
}

func createDry(t *testing.T, resource *dynamic.Resource, namespace, skeleton string) error {
	t.Helper()
	obj, err := unstructured.NewYAMLDecoder(strings.NewReader(skeleton)).Next()
	require.NoError(t, err, skeleton)
	if resource.APIResource().Namespaced {
		resource = resource.Namespace(namespace)
	}
	_, err = resource.Create(t.Context(), obj, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: "Strict"})
	return err
}

// TestSchema_Skeleton_Definitions creates skeletons of definitions. What a CEL rule rejects is no fault.
func TestSchema_Skeleton_Definitions(t *testing.T) {
	offline, err := schema.NewOffline("")
	require.NoError(t, err)
	c := client.Connect(t, "admin")
	namespace := client.NewNamespace(t, c)
	resources := client.Resource(t, c, "customresourcedefinitions")
	var definitions []*unstructured.Object
	for _, file := range corpus.Definitions(t, 8) {
		definition, err := unstructured.Decode(file.JSON)
		require.NoError(t, err)
		for _, path := range [][]string{{"status"}, {"spec", "conversion"}} {
			_, err := unstructured.Delete(definition, path...)
			require.NoError(t, err)
		}
		if _, err := resources.Create(t.Context(), definition, nil); apierrors.IsInvalid(err) {
			continue
		} else {
			require.NoError(t, err)
		}
		client.DeleteAtEnd(t, resources, definition.GetName())
		definitions = append(definitions, definition)
	}
	accepted, byRule := 0, 0
	for _, definition := range definitions {
		schemas, err := offline.WithDefinitions(definition)
		require.NoError(t, err)
		kinds, err := schemas.Kinds(t.Context())
		require.NoError(t, err)
		for _, gvk := range kinds {
			if !isServed(definition, gvk.Version) {
				continue
			}
			s, err := schemas.Kind(t.Context(), gvk)
			require.NoError(t, err)
			served, err := c.WaitForKinds(t.Context(), gvk)
			require.NoError(t, err)
			skeleton := s.Skeleton(gvk, "example")
			err = createDry(t, served[0], namespace, skeleton)
			if err == nil {
				accepted++
				continue
			}
			t.Logf("%s: %v", gvk, err)
			if strings.Contains(skeleton, "# rule: ") {
				byRule++
				continue
			}
			assert.NoError(t, err, "%s\n%s", gvk, skeleton)
		}
	}
	t.Logf("%d skeletons accepted, %d rejected by a rule", accepted, byRule)
	assert.Greater(t, accepted, 5)
}

func isServed(definition *unstructured.Object, version string) bool {
	served, _, err := unstructured.Get[bool](definition, "spec", "versions", "[name="+version+"]", "served")
	return err == nil && served
}
