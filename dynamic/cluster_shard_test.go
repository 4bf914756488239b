package dynamic_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	testclient "github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/unstructured"
)

// TestFollow_ShardsOfServer follows the shards of two resources while their objects change, on the server and as if the server
// lacked the feature.
func TestFollow_ShardsOfServer(t *testing.T) {
	t.Parallel()
	client, namespace := newNamespace(t)
	unsharded := testclient.Connect(t, "admin", testclient.WithoutSharding)
	for name, kind := range map[string]string{"built-in": "configmaps", "custom": sharedWidgetsName(t, client, namespace)} {
		objects := resource(t, client, kind).Namespace(namespace)
		for i := range 40 {
			createShardObject(t, objects, fmt.Sprintf("before-%d", i))
		}
		t.Run(name+" by the server", func(t *testing.T) {
			testclient.NeedSharding(t, client)
			followShards(t, objects, objects, false)
		})
		t.Run(name+" by the client", func(t *testing.T) {
			followShards(t, objects, resource(t, unsharded, kind).Namespace(namespace), true)
		})
	}
}

// sharedWidgetsName returns the name of the resource of sharedWidgets.
func sharedWidgetsName(t *testing.T, client *dynamic.Client, namespace string) string {
	t.Helper()
	return sharedWidgets(t, client, namespace).APIResource().GVR.GroupResource().String()
}

func createShardObject(t *testing.T, objects *dynamic.Resource, name string) {
	t.Helper()
	_, err := objects.Create(t.Context(), &unstructured.Object{Object: map[string]any{"metadata": map[string]any{"name": name}}}, nil)
	require.NoError(t, err)
}

// followShards follows each of three shards in a different form until it has the objects that a list has.
func followShards(t *testing.T, objects, source *dynamic.Resource, isUnsharded bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	selectors := shard.Split(shard.UID, 3)
	reports := [3]bool{}
	report := func(i int) *dynamic.FollowOptions {
		return &dynamic.FollowOptions{Shard: selectors[i], OnUnsharded: func() { reports[i] = true }, Intern: true}
	}
	states := []func(want map[string]string){
		readShard[unstructured.Object](ctx, t, source, report(0)),
		readShard[unstructured.Lazy](ctx, t, dynamic.As[unstructured.Lazy](source), report(1)),
		readShard[unstructured.Object](ctx, t, source.Metadata(), report(2)),
	}
	round := map[bool]string{false: "server", true: "client"}[isUnsharded]
	for i := range 20 {
		name := fmt.Sprintf("%s-%d", round, i)
		createShardObject(t, objects, name)
		_, err := objects.Patch(ctx, fmt.Sprintf("before-%d", i), types.MergePatchType, []byte(`{"metadata":{"labels":{"round":"`+round+`"}}}`), nil)
		require.NoError(t, err)
		if i%2 == 0 {
			_, err := objects.Delete(ctx, name, nil)
			require.NoError(t, err)
		}
	}
	for i, selector := range selectors {
		want := map[string]string{}
		for obj, err := range objects.List(ctx, nil) {
			require.NoError(t, err)
			if selector.Matches(obj.GetNamespace(), obj.GetUID()) {
				want[obj.GetName()] = obj.GetResourceVersion()
			}
		}
		assert.NotEmpty(t, want)
		states[i](want)
		assert.Equal(t, isUnsharded, reports[i], "shard %d", i)
	}
}

// readShard follows a shard after its initial list, and returns a function that reads until the state is as wanted: the
// resourceVersions by name.
func readShard[T any, P interface {
	*T
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
}](ctx context.Context, t *testing.T, source *dynamic.Handle[T], opts *dynamic.FollowOptions) func(want map[string]string) {
	t.Helper()
	next, stop := iter.Pull2(source.Follow(ctx, opts))
	t.Cleanup(stop)
	state := map[string]string{}
	read := func() watch.EventType {
		change, err, more := next()
		require.True(t, more)
		require.NoError(t, err)
		if change.Object == nil {
			return change.Type
		}
		obj := P(change.Object)
		require.True(t, opts.Shard.Matches(obj.GetNamespace(), obj.GetUID()))
		if state[obj.GetName()] = obj.GetResourceVersion(); change.Type == watch.Deleted {
			delete(state, obj.GetName())
		}
		return change.Type
	}
	for read() != dynamic.Synced {
	}
	return func(want map[string]string) {
		for !maps.Equal(want, state) {
			read()
		}
	}
}
