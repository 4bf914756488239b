package clientgo_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	clientgodiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	clientgodynamic "k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind/compat/clientgo"
	"github.com/anykind/anykind/compat/restconfig"
	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// sandbox is the sandbox's API server, as anykind and as client-go connect to it.
type sandbox struct {
	client *dynamic.Client
	conn   *transport.Conn
	config *rest.Config
}

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	c := client.Connect(t, "admin")
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig(t))
	require.NoError(t, err)
	config.QPS = -1
	return &sandbox{client: c, conn: c.ForGVR(configMaps).Conn(), config: config}
}

// httpClient returns an HTTP client for clients of client-go.
func (s *sandbox) httpClient(t *testing.T) *http.Client {
	t.Helper()
	own, err := rest.HTTPClientFor(s.config)
	require.NoError(t, err)
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(own.Transport) })
	return own
}

// clients returns client-go's own dynamic client, and ours.
func (s *sandbox) clients(t *testing.T) map[string]clientgodynamic.Interface {
	t.Helper()
	oracle, err := clientgodynamic.NewForConfigAndClient(s.config, s.httpClient(t))
	require.NoError(t, err)
	return map[string]clientgodynamic.Interface{"client-go": oracle, "anykind": clientgo.NewDynamic(s.conn)}
}

func configMap(name, value string) *unstructuredv1.Unstructured {
	return &unstructuredv1.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"key": value},
	}}
}

// outcome is the result of a call, without the fields that differ between two runs.
type outcome struct {
	Object map[string]any
	Err    string
}

func outcomeOf(obj *unstructuredv1.Unstructured, err error) outcome {
	if err != nil {
		return outcome{Err: string(apierrors.ReasonForError(err)) + ": " + err.Error()}
	}
	own := obj.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace"} {
		unstructuredv1.RemoveNestedField(own.Object, "metadata", field)
	}
	unstructuredv1.RemoveNestedField(own.Object, "details", "uid")
	return outcome{Object: own.Object}
}

// TestNewDynamic_SameAsClientGo makes the same calls with both clients, each in a namespace of its own.
func TestNewDynamic_SameAsClientGo(t *testing.T) {
	s := newSandbox(t)
	outcomes := map[string][]outcome{}
	for name, c := range s.clients(t) {
		outcomes[name] = callEach(t, c, client.NewNamespace(t, s.client))
	}
	assert.Equal(t, outcomes["client-go"], outcomes["anykind"])
	assert.Len(t, outcomes["anykind"], 17)
}

func callEach(t *testing.T, c clientgodynamic.Interface, namespace string) (outcomes []outcome) {
	t.Helper()
	ctx := t.Context()
	maps := c.Resource(configMaps).Namespace(namespace)
	add := func(obj *unstructuredv1.Unstructured, err error) *unstructuredv1.Unstructured {
		outcomes = append(outcomes, outcomeOf(obj, err))
		return obj
	}
	add(maps.Create(ctx, configMap("a", "1"), metav1.CreateOptions{}))
	add(maps.Create(ctx, configMap("a", "1"), metav1.CreateOptions{}))
	add(maps.Create(ctx, configMap("dry", "1"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	found := add(maps.Get(ctx, "a", metav1.GetOptions{}))
	add(maps.Get(ctx, "dry", metav1.GetOptions{}))
	stale := found.DeepCopy()
	require.NoError(t, unstructuredv1.SetNestedField(found.Object, "2", "data", "key"))
	add(maps.Update(ctx, found, metav1.UpdateOptions{}))
	require.NoError(t, unstructuredv1.SetNestedField(stale.Object, "3", "data", "key"))
	_, err := maps.Update(ctx, stale, metav1.UpdateOptions{})
	assert.True(t, apierrors.IsConflict(err), "%v", err)
	add(maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"other":"x"}}`), metav1.PatchOptions{}))
	add(maps.Patch(ctx, "a", types.JSONPatchType, []byte(`[{"op":"remove","path":"/data/nothing"}]`), metav1.PatchOptions{}))
	add(maps.Apply(ctx, "b", configMap("b", "1"), metav1.ApplyOptions{FieldManager: "one"}))
	add(maps.Apply(ctx, "b", configMap("b", "2"), metav1.ApplyOptions{FieldManager: "two"}))
	add(maps.Apply(ctx, "b", configMap("b", "2"), metav1.ApplyOptions{FieldManager: "two", Force: true}))
	add(c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).ApplyStatus(ctx, "missing-"+"x",
		&unstructuredv1.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "missing-x"}}},
		metav1.ApplyOptions{FieldManager: "one"}))
	list, err := maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
	require.NoError(t, err)
	require.Len(t, list.Items, 2)
	assert.NotEmpty(t, list.GetResourceVersion())
	for _, item := range list.Items {
		add(&item, nil)
	}
	page, err := maps.List(ctx, metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	require.NotEmpty(t, page.GetContinue())
	require.NotNil(t, page.GetRemainingItemCount())
	next, err := maps.List(ctx, metav1.ListOptions{Limit: 1, Continue: page.GetContinue()})
	require.NoError(t, err)
	assert.NotEqual(t, page.Items[0].GetName(), next.Items[0].GetName())
	add(checkWatch(t, maps, list.GetResourceVersion()), nil)
	add(nil, orUnexpected(maps.Delete(ctx, "missing", metav1.DeleteOptions{})))
	require.NoError(t, maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=b"}))
	_, err = maps.Get(ctx, "b", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = maps.List(ctx, metav1.ListOptions{ResourceVersion: "x"})
	add(nil, orUnexpected(err))
	return outcomes
}

func orUnexpected(err error) error {
	if err == nil {
		return apierrors.NewInternalError(nil)
	}
	return err
}

// checkWatch deletes an object and returns it as the watch reports it.
func checkWatch(t *testing.T, maps clientgodynamic.ResourceInterface, version string) *unstructuredv1.Unstructured {
	t.Helper()
	w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version, FieldSelector: "metadata.name=a", AllowWatchBookmarks: true})
	require.NoError(t, err)
	require.NoError(t, maps.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	for event := range w.ResultChan() {
		if event.Type == watch.Bookmark {
			continue
		}
		require.Equal(t, watch.Deleted, event.Type)
		w.Stop()
		return event.Object.(*unstructuredv1.Unstructured)
	}
	require.Fail(t, "the watch has ended")
	return nil
}

func (s *sandbox) discovery(t *testing.T) *clientgo.CachedDiscovery {
	t.Helper()
	cached, err := clientgo.NewDiscovery(t.Context(), s.conn, discovery.New(s.conn, nil))
	require.NoError(t, err)
	return cached
}

// discoveryOracle returns client-go's own cached discovery client.
func (s *sandbox) discoveryOracle(t *testing.T) clientgodiscovery.CachedDiscoveryInterface {
	t.Helper()
	delegate, err := clientgodiscovery.NewDiscoveryClientForConfigAndClient(s.config, s.httpClient(t))
	require.NoError(t, err)
	return memory.NewMemCacheClient(delegate)
}

// sortedLists sorts lists and fills in what the lists of one group version leave out.
func sortedLists(lists []*metav1.APIResourceList) []*metav1.APIResourceList {
	for _, list := range lists {
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if gv, err := schema.ParseGroupVersion(list.GroupVersion); err == nil && r.Group == "" && r.Version == "" {
				r.Group = gv.Group
				r.Version = gv.Version
			}
			r.StorageVersionHash = "" // aggregated discovery lacks it
			if len(r.ShortNames) == 0 {
				r.ShortNames = nil
			}
			if len(r.Categories) == 0 {
				r.Categories = nil
			}
		}
		slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(lists, func(a, b *metav1.APIResourceList) int { return strings.Compare(a.GroupVersion, b.GroupVersion) })
	return lists
}

func TestNewDiscovery_SameAsClientGo(t *testing.T) {
	s := newSandbox(t)
	oracle := s.discoveryOracle(t)
	cached := s.discovery(t)

	assert.False(t, cached.Fresh())
	wantGroups, wantLists, err := oracle.ServerGroupsAndResources()
	require.NoError(t, err)
	groups, lists, err := cached.ServerGroupsAndResources()
	require.NoError(t, err)
	assert.Equal(t, wantGroups, groups)
	assert.Equal(t, sortedLists(wantLists), sortedLists(lists))
	assert.True(t, cached.Fresh())

	wantLists, err = oracle.ServerPreferredNamespacedResources()
	require.NoError(t, err)
	lists, err = cached.ServerPreferredNamespacedResources()
	require.NoError(t, err)
	assert.Equal(t, sortedLists(wantLists), sortedLists(lists))

	want, err := oracle.ServerResourcesForGroupVersion("apps/v1")
	require.NoError(t, err)
	got, err := cached.ServerResourcesForGroupVersion("apps/v1")
	require.NoError(t, err)
	assert.Equal(t, sortedLists([]*metav1.APIResourceList{want}), sortedLists([]*metav1.APIResourceList{got}))
	_, err = cached.ServerResourcesForGroupVersion("missing.example.org/v1")
	require.ErrorIs(t, err, memory.ErrCacheNotFound)

	wantVersion, err := oracle.ServerVersion()
	require.NoError(t, err)
	version, err := cached.ServerVersion()
	require.NoError(t, err)
	assert.Equal(t, wantVersion, version)

	paths, err := cached.OpenAPIV3().Paths()
	require.NoError(t, err)
	assert.Contains(t, paths, "apis/apps/v1")
	document, err := cached.OpenAPISchema()
	require.NoError(t, err)
	assert.NotEmpty(t, document.GetDefinitions().GetAdditionalProperties())
	legacy, err := cached.WithLegacy().ServerResourcesForGroupVersion("apps/v1")
	require.NoError(t, err)
	assert.NotEmpty(t, legacy.APIResources)

	for _, category := range []string{"all", "api-extensions", "missing"} {
		wantResources, wantFound := restmapper.NewDiscoveryCategoryExpander(oracle).Expand(category)
		resources, found := restmapper.NewDiscoveryCategoryExpander(cached).Expand(category)
		assert.Equal(t, wantFound, found)
		assert.ElementsMatch(t, wantResources, resources)
	}
}

func TestNewDiscovery_Invalidate(t *testing.T) {
	s := newSandbox(t)
	cached := s.discovery(t)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	_, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: "deployments"})
	require.NoError(t, err)
	assert.True(t, cached.Fresh())
	cached.Invalidate()
	assert.False(t, cached.Fresh())
	_, err = mapper.ResourceFor(schema.GroupVersionResource{Resource: "missing"})
	require.Error(t, err)
	assert.True(t, cached.Fresh())
}

func TestNewRESTClientGetter_Builder(t *testing.T) {
	s := newSandbox(t)
	namespace := client.NewNamespace(t, s.client)
	maps := s.client.ForGVR(configMaps).Namespace(namespace)
	for _, name := range []string{"a", "b"} {
		_, err := maps.Create(t.Context(), configMap(name, "1"), nil)
		require.NoError(t, err)
	}
	getter, err := clientgo.NewRESTClientGetter(t.Context(), s.conn, s.client.Discovery())
	require.NoError(t, err)
	var _ genericclioptions.RESTClientGetter = getter
	names := func(arguments ...string) (names []string) {
		infos, err := resource.NewBuilder(getter).Unstructured().NamespaceParam(namespace).DefaultNamespace().
			ResourceTypeOrNameArgs(true, arguments...).Flatten().Do().Infos()
		require.NoError(t, err)
		for _, info := range infos {
			names = append(names, info.ObjectName())
		}
		return names
	}
	assert.Equal(t, []string{"configmaps/a"}, names("cm/a"))
	assert.Subset(t, names("configmaps"), []string{"configmaps/a", "configmaps/b"})
	assert.Equal(t, []string{"configmaps/a", "namespaces/" + namespace}, names("cm/a", "ns/"+namespace))
	infos, err := resource.NewBuilder(getter).Unstructured().ContinueOnError().NamespaceParam(namespace).DefaultNamespace().
		Stream(strings.NewReader("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"), "stream").Do().Infos()
	require.NoError(t, err)
	require.Len(t, infos, 1)
	_, err = resource.NewHelper(infos[0].Client, infos[0].Mapping).Create(namespace, true, infos[0].Object)
	require.NoError(t, err)
	_, err = maps.Get(t.Context(), "c", nil)
	require.NoError(t, err)

	loader := getter.ToRawKubeConfigLoader()
	found, overridden, err := loader.Namespace()
	require.NoError(t, err)
	assert.Equal(t, s.conn.Namespace(), found)
	assert.False(t, overridden)
	raw, err := loader.RawConfig()
	require.NoError(t, err)
	require.NoError(t, clientcmd.ConfirmUsable(raw, ""))
	config, err := loader.ClientConfig()
	require.NoError(t, err)
	assert.Equal(t, restconfig.FromConn(s.conn).Host, config.Host)
}
