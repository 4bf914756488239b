package cache_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// patience is how long tests wait for what a real cluster does in its own time.
const patience = 30 * time.Second

// resource gives a handle on a resource of the sandbox, as an administrator.
func resource(t *testing.T, kubeconfig, name string) *dynamic.Resource {
	t.Helper()
	return resourceAs(t, kubeconfig, "admin", name)
}

func resourceAs(t *testing.T, kubeconfig, kubeContext, name string) *dynamic.Resource {
	t.Helper()
	cfg, err := transport.Load(t.Context(), &transport.LoadOptions{Path: kubeconfig, Context: kubeContext})
	require.NoError(t, err)
	client, err := dynamic.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	found, err := client.Resource(t.Context(), name)
	require.NoError(t, err)
	return found
}

// namespace makes a namespace of the test's own.
func namespace(t *testing.T) string {
	t.Helper()
	namespaces := resource(t, cluster.Kubeconfig(t), "namespaces")
	created, err := namespaces.Create(t.Context(), &object{Object: map[string]any{"metadata": map[string]any{"generateName": "test-"}}}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := namespaces.Delete(ctx, created.GetName(), nil)
		require.NoError(t, err)
	})
	return created.GetName()
}

func configMap(name string, values ...string) *object {
	data := map[string]any{}
	for i, value := range values {
		data[fmt.Sprint("v", i)] = value
	}
	return &object{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": data}}
}

// run runs a cache until the test ends.
func run[T any](t *testing.T, c *cache.Cache[T]) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { unchanged(t, c.Run(ctx)) })
	t.Cleanup(func() { cancel(); done.Wait() })
}

func TestACacheShowsWhatWasJustWritten(t *testing.T) {
	configMaps := resource(t, cluster.Kubeconfig(t), "cm").In(namespace(t))
	c := cache.New(configMaps, nil)
	run(t, c)
	require.NoError(t, c.Sync(t.Context()))
	for i := range 20 {
		written, err := configMaps.Create(t.Context(), configMap(fmt.Sprint("own-", i)), nil)
		require.NoError(t, err)
		require.NoError(t, c.WaitFor(t.Context(), written.GetResourceVersion()))
		read, found := c.Get(written.GetNamespace(), written.GetName())
		require.True(t, found)
		assert.Equal(t, written.GetResourceVersion(), read.GetResourceVersion())
	}
}

func TestSyncReturnsThatTheUserMayNotRead(t *testing.T) {
	secrets := resourceAs(t, cluster.Kubeconfig(t), "limited", "secrets").In("default")
	c := cache.New(secrets, nil)
	run(t, c)
	err := c.Sync(t.Context())
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestEqualPartsOfObjectsAreHeldOnceUnlessTransformChangesThem(t *testing.T) {
	configMaps := resource(t, cluster.Kubeconfig(t), "cm").In(namespace(t))
	for i := range 5 {
		_, err := configMaps.Create(t.Context(), configMap(fmt.Sprint("alike-", i), "the same"), nil)
		require.NoError(t, err)
	}
	held := func(opts *cache.Options[object]) (maps int) {
		c := cache.New(configMaps, opts)
		run(t, c)
		require.NoError(t, c.Sync(t.Context()))
		places := map[uintptr]bool{}
		for _, obj := range c.All() {
			if strings.HasPrefix(obj.GetName(), "alike-") {
				assert.Equal(t, map[string]any{"v0": "the same"}, obj.Object["data"])
				places[reflect.ValueOf(obj.Object["data"]).Pointer()] = true
			}
		}
		return len(places)
	}
	assert.Equal(t, 2, held(nil), "the first has its own, before it is known that it comes again")
	assert.Equal(t, 5, held(&cache.Options[object]{Transform: func(obj *object) *object { return obj }}))
}
