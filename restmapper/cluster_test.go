package restmapper_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/transport"
)

// sandbox returns a connection to the real server, its snapshot and a mapper.
func sandbox(t *testing.T) (*transport.Conn, *discovery.Snapshot, *restmapper.Mapper) {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: cluster.Kubeconfig(t)})
	require.NoError(t, err)
	conn, err := transport.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	client := discovery.New(conn, nil)
	snapshot, err := client.Snapshot(t.Context())
	require.NoError(t, err)
	return conn, snapshot, restmapper.New(client)
}

func TestMapper_FindsEveryResourceOfRealServer(t *testing.T) {
	_, snapshot, mapper := sandbox(t)
	found := 0
	for _, group := range snapshot.Groups {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				for _, name := range []string{
					resource.GVR.Resource + "." + version.Name + "." + group.Name,
					resource.GVK.Kind + "." + version.Name + "." + group.Name,
				} {
					mapping, err := mapper.Resource(t.Context(), name)
					require.NoError(t, err)
					assert.Same(t, resource, mapping, name)
				}
				mapping, err := mapper.Kind(t.Context(), resource.GVK)
				require.NoError(t, err)
				assert.Equal(t, resource.GVK, mapping.GVK)
				found++
			}
		}
	}
	assert.Greater(t, found, 60)
}

func TestMapper_BareNamesOfRealServer(t *testing.T) {
	_, _, mapper := sandbox(t)
	for name, want := range map[string]string{
		"po": "pods", "Pod": "pods", "pod": "pods", "PODS": "pods", "cm": "configmaps", "ns": "namespaces", "no": "nodes",
		"svc": "services", "sa": "serviceaccounts", "pvc": "persistentvolumeclaims", "ev": "events", "events": "events",
		"deploy": "deployments.apps", "Deployment": "deployments.apps", "deployments.apps": "deployments.apps",
		"rs": "replicasets.apps", "sts": "statefulsets.apps", "ds": "daemonsets.apps", "cj": "cronjobs.batch",
		"ing": "ingresses.networking.k8s.io", "netpol": "networkpolicies.networking.k8s.io",
		"hpa": "horizontalpodautoscalers.autoscaling", "pdb": "poddisruptionbudgets.policy",
		"crd": "customresourcedefinitions.apiextensions.k8s.io", "crds": "customresourcedefinitions.apiextensions.k8s.io",
		"csr": "certificatesigningrequests.certificates.k8s.io", "sc": "storageclasses.storage.k8s.io",
		"pc": "priorityclasses.scheduling.k8s.io", "events.events.k8s.io": "events.events.k8s.io",
	} {
		mapping, err := mapper.Resource(t.Context(), name)
		if assert.NoError(t, err, name) {
			assert.Equal(t, want, mapping.GVR.GroupResource().String(), name)
		}
	}
	mapping, err := mapper.Resource(t.Context(), "hpa")
	require.NoError(t, err)
	assert.Equal(t, "v2", mapping.GVR.Version, "the server's preferred version")
	_, err = mapper.Resource(t.Context(), "deploymnets")
	require.True(t, meta.IsNoMatchError(err), "%v", err)
	require.ErrorContains(t, err, "did you mean deployments.apps")
}

func TestMapper_FindsNewDefinitions(t *testing.T) {
	conn, _, mapper := sandbox(t)
	_, err := mapper.Resource(t.Context(), "gadgets")
	require.True(t, meta.IsNoMatchError(err), "%v", err)

	define(t, conn, "one.example.com")
	assert.Equal(t, "one.example.com", eventually(t, mapper, "gd").GVR.Group)
	define(t, conn, "two.example.com")
	eventually(t, mapper, "gadgets.two.example.com")
	_, err = mapper.Resource(t.Context(), "gadgets")
	var ambiguous *restmapper.AmbiguousError
	require.ErrorAs(t, err, &ambiguous)
	var groups []string
	for _, candidate := range ambiguous.Candidates {
		groups = append(groups, candidate.Group)
	}
	assert.Equal(t, []string{"one.example.com", "two.example.com"}, slices.Sorted(slices.Values(groups)))
}

func TestMapper_DeletedDefinitionIsRemoved(t *testing.T) {
	conn, _, mapper := sandbox(t)
	t.Run("defined", func(t *testing.T) {
		define(t, conn, "gone.example.com")
		eventually(t, mapper, "gadgets.gone.example.com")
	})
	reset := mapper.RESTMapper(t.Context())
	var err error
	for deadline := time.Now().Add(30 * time.Second); err == nil && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		reset.Reset()
		_, err = reset.ResourceFor(schema.GroupVersionResource{Group: "gone.example.com", Resource: "gadgets"})
	}
	require.True(t, meta.IsNoMatchError(err), "%v", err)
	_, err = mapper.Resource(t.Context(), "gadgets.gone.example.com")
	var noMatch *restmapper.NoMatchError
	require.ErrorAs(t, err, &noMatch)
	assert.WithinDuration(t, time.Now(), noMatch.RemovedAt, time.Minute)
	_, err = mapper.Kind(t.Context(), schema.GroupVersionKind{Group: "gone.example.com", Version: "v1", Kind: "Gadget"})
	require.ErrorContains(t, err, "it did until")
}

func TestMapper_CategoriesOfRealServer(t *testing.T) {
	_, _, mapper := sandbox(t)
	found, err := mapper.Resources(t.Context(), "all,cm")
	require.NoError(t, err)
	var names []string
	for _, mapping := range found {
		names = append(names, mapping.GVR.GroupResource().String())
	}
	for _, want := range []string{"pods", "services", "deployments.apps", "jobs.batch", "horizontalpodautoscalers.autoscaling", "configmaps"} {
		assert.Contains(t, names, want)
	}
	assert.Equal(t, slices.Compact(slices.Sorted(slices.Values(names))), slices.Sorted(slices.Values(names)), "nothing is listed twice")
}

// define creates a definition of gadgets in a group, until the test ends.
func define(t *testing.T, conn *transport.Conn, group string) {
	t.Helper()
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	send := func(ctx context.Context, method, path, body string) {
		response, err := conn.Do(ctx, &transport.Request{
			Method: method, Path: path, Body: []byte(body), Header: http.Header{"Content-Type": {"application/json"}},
		})
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	send(t.Context(), http.MethodPost, path, strings.ReplaceAll(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.GROUP"},
		"spec": {"group": "GROUP", "scope": "Cluster",
			"names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "shortNames": ["gd"]},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`,
		"GROUP", group))
	t.Cleanup(func() { send(context.Background(), http.MethodDelete, path+"/gadgets."+group, "{}") })
}

// eventually waits until the server serves a resource.
func eventually(t *testing.T, mapper *restmapper.Mapper, name string) *discovery.Resource {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		mapping, err := mapper.Resource(t.Context(), name)
		if err == nil {
			return mapping
		}
		if !meta.IsNoMatchError(err) || time.Now().After(deadline) {
			require.NoError(t, err)
		}
	}
}
