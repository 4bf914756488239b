package dynamic_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/dynamic"
	testclient "github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/shard"
	"github.com/anykind/anykind/transport"
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

// TestListPage_ShardOfServer has the facts about lists of a shard that this package relies on.
func TestListPage_ShardOfServer(t *testing.T) {
	t.Parallel()
	client, namespace := newNamespace(t)
	testclient.NeedSharding(t, client)
	configMaps := resource(t, client, "cm").Namespace(namespace)
	widgets := sharedWidgets(t, client, namespace)
	for i := range 10 {
		createShardObject(t, configMaps, fmt.Sprintf("a-%d", i))
		createShardObject(t, widgets, fmt.Sprintf("a-%d", i))
	}
	const half = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
	const quarters = "shardRange(object.metadata.uid, '0x4000000000000000', '0x8000000000000000') || shardRange(object.metadata.uid, '0x0000000000000000', '0x4000000000000000')"
	for name, tc := range map[string]struct {
		of       *dynamic.Resource
		selector string
		limit    int64
		echo     any
	}{
		"built-in":  {configMaps, half, 0, half},
		"two":       {configMaps, quarters, 0, quarters},
		"page":      {configMaps, half, 1, half},
		"custom":    {widgets, half, 0, nil},
		"no effect": {configMaps, "", 0, nil},
	} {
		all, err := tc.of.ListPage(t.Context(), nil)
		require.NoError(t, err)
		selector, err := shard.Parse(cmp.Or(tc.selector, half))
		require.NoError(t, err)
		want := map[string]bool{}
		for _, obj := range all.Items {
			if tc.selector == "" || selector.Matches(namespace, obj.GetUID()) {
				want[obj.GetName()] = true
			}
		}
		list, err := listShard(t, tc.of, tc.selector, tc.limit)
		require.NoError(t, err, name)
		got := map[string]bool{}
		for _, obj := range list.Items {
			got[obj.Metadata.Name] = true
		}
		if tc.limit == 0 {
			assert.Equal(t, want, got, name)
		} else if len(list.Items) > 0 && list.Metadata["continue"] != nil {
			assert.Contains(t, want, list.Items[0].Metadata.Name, name)
			assert.Greater(t, list.Metadata["remainingItemCount"], float64(len(want)-1), "objects of other shards count")
		}
		shardInfo, _ := list.Metadata["shardInfo"].(map[string]any)
		assert.Equal(t, tc.echo, shardInfo["selector"], name)
	}
	for _, invalid := range []string{"x", "shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')", "shardRange(object.metadata.uid, '0x0', '0x8000000000000000')"} {
		_, err := listShard(t, configMaps, invalid, 0)
		var status *apierrors.StatusError
		require.ErrorAs(t, err, &status, invalid)
		assert.EqualValues(t, http.StatusInternalServerError, status.ErrStatus.Code)
		assert.ErrorContains(t, err, "invalid shard selector")
	}
}

func TestHandle_ProbeShardingOfServer(t *testing.T) {
	t.Parallel()
	client, namespace := newNamespace(t)
	unsharded := testclient.Connect(t, "admin", testclient.WithoutSharding)
	for name, kind := range map[string]string{"built-in": "configmaps", "custom": sharedWidgetsName(t, client, namespace)} {
		isSharded, err := resource(t, unsharded, kind).Namespace(namespace).ProbeSharding(t.Context())
		require.NoError(t, err)
		assert.False(t, isSharded, name)
		_, err = resource(t, testclient.Connect(t, "limited"), kind).Namespace(namespace).ProbeSharding(t.Context())
		assert.True(t, apierrors.IsForbidden(err), "%s: %v", name, err)
		t.Run(name, func(t *testing.T) {
			testclient.NeedSharding(t, client)
			for _, handle := range []*dynamic.Resource{resource(t, client, kind).Namespace(namespace), resource(t, client, kind).Metadata()} {
				fresh := testclient.Connect(t, "admin")
				isSharded, err := fresh.ForAPIResource(handle.APIResource()).Namespace(namespace).ProbeSharding(t.Context())
				require.NoError(t, err)
				assert.True(t, isSharded)
			}
		})
	}
}

// shardList is a list as the server sends it.
type shardList struct {
	Metadata map[string]any
	Items    []struct{ Metadata struct{ Name string } }
}

// listShard sends a list request with the text of a shard selector.
func listShard(t *testing.T, of *dynamic.Resource, selector string, limit int64) (list shardList, err error) {
	t.Helper()
	path, err := of.Path("")
	require.NoError(t, err)
	query := url.Values{"shardSelector": {selector}}
	if limit > 0 {
		query.Set("limit", fmt.Sprint(limit))
	}
	request := &transport.Request{Method: http.MethodGet, Path: path, Query: query, Header: http.Header{"Accept": {"application/json"}}}
	response, err := of.Conn().Do(t.Context(), request)
	if err != nil {
		return list, err
	}
	defer response.Body.Close()
	return list, json.NewDecoder(response.Body).Decode(&list)
}
