package clientgo_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind/compat/clientgo"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
)

// changes returns the calls of a handler without updates that change nothing: client-go may make them after a relist.
func changes(r *recorder) []string {
	return slices.DeleteFunc(r.all(), func(call string) bool {
		words := strings.Fields(call)
		return words[0] == "update" && words[1] == words[2]
	})
}

// TestInformer_RestartSameAsClientGo restarts the API server, by a signal and by a crash with compacted versions, while the same
// informers of client-go and of ours run.
func TestInformer_RestartSameAsClientGo(t *testing.T) {
	s := newSandbox(t)
	namespace := client.NewNamespace(t, s.client)
	maps := s.client.ForGVR(configMaps).Namespace(namespace)
	create := func(name string) {
		_, err := maps.Create(t.Context(), configMap(name, "1"), nil)
		require.NoError(t, err)
	}
	create("kept")
	create("deleted")
	stop := make(chan struct{})
	recorders := map[string]*recorder{}
	informers := map[string]cache.SharedIndexInformer{}
	for name, factory := range map[string]dynamicinformer.DynamicSharedInformerFactory{
		"client-go": dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.clients(t)["client-go"], 0, namespace, withoutRootCA),
		"anykind":   clientgo.NewFilteredDynamicSharedInformerFactory(s.client, 0, namespace, withoutRootCA),
	} {
		recorders[name] = &recorder{}
		informers[name] = factory.ForResource(configMaps).Informer()
		_, err := informers[name].AddEventHandler(recorders[name])
		require.NoError(t, err)
		factory.Start(stop)
		defer factory.Shutdown()
		require.Equal(t, map[schema.GroupVersionResource]bool{configMaps: true}, factory.WaitForCacheSync(stop))
	}
	defer close(stop)
	calls := 0
	await := func(more int) {
		calls += more
		for _, own := range recorders {
			eventually(t, func() bool { return len(changes(own)) >= calls })
		}
	}
	await(2)
	cluster.RestartAPIServer(t, false)
	create("after")
	await(1)
	_, err := maps.Update(t.Context(), configMap("kept", "2"), nil)
	require.NoError(t, err)
	await(1)
	cluster.Compact(t)
	cluster.RestartAPIServer(t, true)
	_, err = maps.Delete(t.Context(), "deleted", nil)
	require.NoError(t, err)
	await(1)
	_, err = maps.Update(t.Context(), configMap("after", "2"), nil)
	require.NoError(t, err)
	await(1)
	want := []string{"add after=1 false", "update kept=1 kept=2", "delete deleted=1", "update after=1 after=2"}
	for name, own := range recorders {
		all := changes(own)
		assert.ElementsMatch(t, []string{"add kept=1 true", "add deleted=1 true"}, all[:2], name)
		assert.Equal(t, want, all[2:], name)
	}
	assert.Len(t, recorders["anykind"].all(), len(want)+2)
	for name, own := range informers {
		assert.ElementsMatch(t, []string{namespace + "/kept", namespace + "/after"}, own.GetStore().ListKeys(), name)
		assert.True(t, own.HasSynced(), name)
		assert.False(t, own.IsStopped(), name)
	}
}
