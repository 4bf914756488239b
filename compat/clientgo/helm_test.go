package clientgo_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	clientgodiscovery "k8s.io/client-go/discovery"

	"github.com/anykind/anykind/compat/clientgo"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
)

// release is the manifest of a release, as Helm renders it: namespaced and cluster-scoped objects, with and without a namespace.
const release = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {key: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NAMESPACE}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAMESPACE}
rules: []
`

// TestRESTClientGetter_SameForHelm makes the calls of Helm's action.Configuration and kube.Client with cli-runtime's getter and
// with ours, while a group of the server is unavailable.
func TestRESTClientGetter_SameForHelm(t *testing.T) {
	s := newSandbox(t)
	registerUnavailable(t, s)
	calls := map[string]map[string]any{}
	for _, name := range []string{"cli-runtime", "anykind"} {
		namespace := client.NewNamespace(t, s.client)
		flags := genericclioptions.NewConfigFlags(true)
		*flags.KubeConfig = cluster.Kubeconfig(t)
		*flags.CacheDir = t.TempDir()
		var getter genericclioptions.RESTClientGetter = flags
		if name == "anykind" {
			getter = clientgo.WrapRESTClientGetter(t.Context(), flags, nil)
		}
		calls[name] = helmCalls(t, getter, namespace)
		client.DeleteAtEnd(t, client.Resource(t, s.client, "clusterroles"), namespace)
	}
	assert.Equal(t, calls["cli-runtime"], calls["anykind"])
}

// helmCalls returns what calls return, without what differs between two namespaces.
func helmCalls(t *testing.T, getter genericclioptions.RESTClientGetter, namespace string) map[string]any {
	t.Helper()
	results := map[string]any{}
	found, enforced, err := getter.ToRawKubeConfigLoader().Namespace()
	results["namespace"] = []any{found, enforced, err}
	results["capabilities"] = capabilities(t, getter)

	mapper, err := getter.ToRESTMapper()
	require.NoError(t, err)
	for _, kind := range []schema.GroupKind{{Kind: "Pod"}, {Group: "apps", Kind: "Deployment"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}} {
		mapping, err := mapper.RESTMapping(kind)
		require.NoError(t, err)
		results["mapping of "+kind.String()] = []any{mapping.Resource, mapping.GroupVersionKind, mapping.Scope.Name()}
	}
	_, err = mapper.RESTMapping(schema.GroupKind{Group: "missing.example.org", Kind: "Missing"}, "v1")
	assert.True(t, meta.IsNoMatchError(err))
	results["missing kind"] = err.Error()

	infos := build(t, getter, namespace, strings.ReplaceAll(release, "NAMESPACE", namespace))
	for _, info := range infos {
		helper := resource.NewHelper(info.Client, info.Mapping)
		created, err := helper.Create(info.Namespace, true, info.Object)
		require.NoError(t, err)
		_, err = helper.Create(info.Namespace, true, info.Object)
		assert.True(t, apierrors.IsAlreadyExists(err), "%v", err)
		require.NoError(t, info.Refresh(created, true))
		patched, err := helper.Patch(info.Namespace, info.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"version":"2"}}}`), nil)
		require.NoError(t, err)
		current, err := helper.Get(info.Namespace, info.Name)
		require.NoError(t, err)
		assert.Equal(t, labelsOf(t, patched), labelsOf(t, current)) // controllers change the rest
		name := strings.ReplaceAll(info.ObjectName(), namespace, "NAMESPACE")
		results[name] = []any{info.Namespace == namespace, info.Mapping.Scope.Name(), labelsOf(t, current)}
	}
	for _, info := range infos {
		_, err := resource.NewHelper(info.Client, info.Mapping).Delete(info.Namespace, info.Name)
		require.NoError(t, err)
	}
	_, err = infosOf(getter, namespace, "apiVersion: missing.example.org/v1\nkind: Missing\nmetadata: {name: a}\n")
	require.Error(t, err)
	results["missing kind in a manifest"] = err.Error()
	return results
}

func labelsOf(t *testing.T, obj runtime.Object) map[string]string {
	t.Helper()
	accessor, err := meta.Accessor(obj)
	require.NoError(t, err)
	return accessor.GetLabels()
}

func build(t *testing.T, getter genericclioptions.RESTClientGetter, namespace, manifest string) []*resource.Info {
	t.Helper()
	infos, err := infosOf(getter, namespace, manifest)
	require.NoError(t, err)
	require.Len(t, infos, 3)
	return infos
}

func infosOf(getter genericclioptions.RESTClientGetter, namespace, manifest string) ([]*resource.Info, error) {
	return resource.NewBuilder(getter).ContinueOnError().NamespaceParam(namespace).DefaultNamespace().Flatten().Unstructured().
		Stream(strings.NewReader(manifest), "").Do().Infos()
}

// capabilities returns the server's version and the group versions and kinds that a chart can ask for.
func capabilities(t *testing.T, getter genericclioptions.RESTClientGetter) []string {
	t.Helper()
	discovery, err := getter.ToDiscoveryClient()
	require.NoError(t, err)
	version, err := discovery.ServerVersion()
	require.NoError(t, err)
	all := []string{version.GitVersion}
	discovery.Invalidate()
	_, lists, err := discovery.ServerGroupsAndResources()
	if !clientgodiscovery.IsGroupDiscoveryFailedError(err) { // which Helm logs; cli-runtime's cache on disk hides it
		require.NoError(t, err)
	}
	for _, list := range sortedLists(lists) {
		for _, r := range list.APIResources {
			all = append(all, list.GroupVersion+"/"+r.Kind)
		}
	}
	return all
}
