package builtin_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/apitest/internal/builtin"
)

func decoded(t *testing.T, text string) map[string]any {
	content, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	var obj map[string]any
	require.NoError(t, utiljson.Unmarshal(content, &obj))
	return obj
}

func TestDecode_UnknownFieldsAndWrongTypes(t *testing.T) {
	deployments := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	obj, unknown, err := builtin.Decode(deployments, decoded(t, `{apiVersion: apps/v1, kind: Deployment, extra: 1, spec: {replicas: null, paused: false,
  template: {spec: {containers: [{name: a, images: b, resources: {limits: {cpu: 1000m}}}]}}}}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"extra", "spec.template.spec.containers[0].images"}, unknown)
	spec := obj["spec"].(map[string]any)
	assert.NotContains(t, spec, "replicas")
	assert.NotContains(t, spec, "paused")
	container := spec["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0]
	assert.Equal(t, map[string]any{"name": "a", "resources": map[string]any{"limits": map[string]any{"cpu": "1"}}}, container)

	_, _, err = builtin.Decode(deployments, decoded(t, `{spec: {replicas: many}}`))
	assert.EqualError(t, err, "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32")
}

func TestDecodeWrite_EmptyFieldsWithoutCompleteRules(t *testing.T) {
	pods := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	pod := `{metadata: {finalizers: []}, spec: {tolerations: [], overhead: {}, volumes: [{name: a, emptyDir: {}}]}, status: {resourceClaimStatuses: []}}`
	configs := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for _, test := range []struct {
		kind        schema.GroupVersionKind
		subresource string
		object      string
		want        []string
	}{
		{pods, "", pod, []string{"spec.overhead"}},
		{pods, "status", pod, []string{"status.resourceClaimStatuses"}},
		{configs, "", `{data: {}, binaryData: {}}`, []string{"binaryData"}},
		{configs, "", `{data: {a: b}}`, nil},
		{schema.GroupVersionKind{Kind: "Unknown"}, "", `{data: {}}`, nil},
	} {
		_, _, empty, err := builtin.DecodeWrite(test.kind, test.subresource, decoded(t, test.object))
		assert.NoError(t, err)
		assert.Equal(t, test.want, empty, test.object)
	}
}

func TestDecode_MalformedTime(t *testing.T) {
	leases := schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}
	obj, _, err := builtin.Decode(leases, decoded(t, `{spec: {renewTime: "2024-01-02T05:04:05.000000+02:00"}}`))
	require.NoError(t, err)
	assert.Equal(t, "2024-01-02T03:04:05.000000Z", obj["spec"].(map[string]any)["renewTime"])

	_, _, err = builtin.Decode(leases, decoded(t, `{spec: {renewTime: yesterday}}`))
	assert.EqualError(t, err, `parsing time "yesterday" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "yesterday" as "2006"`)
}

func TestPrepareForUpdate_ServiceType(t *testing.T) {
	services := schema.GroupResource{Resource: "services"}
	old := decoded(t, `{spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: true, externalTrafficPolicy: Cluster, ports: [{port: 80, nodePort: 30080}]},
  status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}`)
	obj := decoded(t, `{spec: {type: ClusterIP, allocateLoadBalancerNodePorts: true, externalTrafficPolicy: Local, ports: [{port: 80, nodePort: 30080}]}}`)
	builtin.PrepareForUpdate(services, "", obj, old)
	assert.Equal(t, decoded(t, `{metadata: {}, spec: {type: ClusterIP, externalTrafficPolicy: Local, ports: [{port: 80}]}, status: {loadBalancer: {}}}`), obj,
		"externalTrafficPolicy was changed: its validation fails")
}

func TestPrepareForUpdate_StatusAndGeneration(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	old := `{metadata: {name: web, generation: 3}, spec: {replicas: 1}, status: {replicas: 1}}`
	for _, c := range []struct{ name, subresource, update, want string }{
		{"spec", "", `{metadata: {name: web}, spec: {replicas: 2}, status: {replicas: 5}}`,
			`{metadata: {name: web, generation: 4}, spec: {replicas: 2}, status: {replicas: 1}}`},
		{"labels", "", `{metadata: {name: web, labels: {a: b}}, spec: {replicas: 1}}`,
			`{metadata: {name: web, labels: {a: b}, generation: 3}, spec: {replicas: 1}, status: {replicas: 1}}`},
		{"status", "status", `{metadata: {name: web, labels: {a: b}}, spec: {replicas: 2}, status: {replicas: 5}}`,
			`{metadata: {name: web, generation: 3}, spec: {replicas: 1}, status: {replicas: 5}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			obj := decoded(t, c.update)
			builtin.PrepareForUpdate(deployments, c.subresource, obj, decoded(t, old))
			assert.Equal(t, decoded(t, c.want), obj)
		})
	}
}

func TestAllocateService_AddressesAndPorts(t *testing.T) {
	stored := []map[string]any{decoded(t, `{metadata: {name: first, namespace: a}, spec: {clusterIPs: [10.96.0.2], ports: [{port: 1, protocol: TCP, nodePort: 30000}]}}`)}
	service := decoded(t, `{metadata: {name: second, namespace: a}, spec: {type: NodePort, ports: [{port: 80, protocol: TCP}, {port: 80, protocol: UDP}]}}`)
	require.Empty(t, builtin.AllocateService(service, nil, slices.Values(stored)))
	spec := service["spec"].(map[string]any)
	assert.Equal(t, "10.96.0.3", spec["clusterIP"])
	assert.Equal(t, []any{"IPv4"}, spec["ipFamilies"])
	assert.Equal(t, int64(30001), spec["ports"].([]any)[0].(map[string]any)["nodePort"])
	assert.Equal(t, int64(30000), spec["ports"].([]any)[1].(map[string]any)["nodePort"])

	taken := decoded(t, `{metadata: {name: third, namespace: a}, spec: {clusterIP: 10.96.0.2, type: ClusterIP, ports: [{port: 80, protocol: TCP}]}}`)
	errs := builtin.AllocateService(taken, nil, slices.Values(stored))
	require.Len(t, errs, 1)
	assert.Equal(t, `spec.clusterIPs: Invalid value: "10.96.0.2": failed to allocate IP 10.96.0.2: provided IP is already allocated`, errs[0].Error())
}

func TestSelectableFields_OfPods(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	set := builtin.SelectableFields(pods, decoded(t, `{metadata: {name: web, namespace: a}, spec: {nodeName: one, restartPolicy: Always}, status: {phase: Running}}`))
	for text, matches := range map[string]bool{
		"spec.nodeName=one": true, "status.phase!=Running": false, "metadata.namespace=a,spec.hostNetwork=false": true, "spec.nodeName=": false,
	} {
		selector, err := fields.ParseSelector(text)
		require.NoError(t, err)
		assert.Equal(t, matches, selector.Matches(set), text)
	}
	assert.NotContains(t, set, "spec.priority")
}

func TestSelectableFields_NamespaceOfClusterScoped(t *testing.T) {
	for resource, isSelectable := range map[string]bool{
		"clusterroles.rbac.authorization.k8s.io": true, "persistentvolumes": true, "namespaces": false, "nodes": false,
		"certificatesigningrequests.certificates.k8s.io": false, "resourceslices.resource.k8s.io": false,
	} {
		set := builtin.SelectableFields(schema.ParseGroupResource(resource), map[string]any{})
		assert.Equal(t, isSelectable, set.Has("metadata.namespace"), resource)
	}
}
