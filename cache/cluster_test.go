package cache_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
	testclient "github.com/anykind/anykind/internal/testing/client"
)

// patience is how long tests wait for what a real cluster does in its own time.
const patience = 30 * time.Second

// resource returns a handle on a resource of the sandbox, as an administrator.
func resource(t *testing.T, name string) *dynamic.Resource {
	t.Helper()
	return resourceAs(t, "admin", name)
}

// resourceAs returns a handle on a resource of the sandbox, as one of its kubeconfig's contexts.
func resourceAs(t *testing.T, kubeContext, name string) *dynamic.Resource {
	t.Helper()
	return testclient.Resource(t, testclient.Connect(t, kubeContext), name)
}

// namespace returns the name of a new namespace, deleted when the test ends.
func namespace(t *testing.T) string {
	t.Helper()
	namespaces := resource(t, "namespaces")
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
	done.Go(func() { assertUnchanged(t, c.Run(ctx)) })
	t.Cleanup(func() { cancel(); done.Wait() })
}

func TestCache_ReadsOwnWrites(t *testing.T) {
	configMaps := resource(t, "cm").Namespace(namespace(t))
	c := cache.New(configMaps, nil)
	run(t, c)
	require.NoError(t, c.WaitForSync(t.Context()))
	for i := range 20 {
		written, err := configMaps.Create(t.Context(), configMap(fmt.Sprint("own-", i)), nil)
		require.NoError(t, err)
		require.NoError(t, c.WaitForResourceVersion(t.Context(), written.GetResourceVersion()))
		read, found := c.Get(written.GetNamespace(), written.GetName())
		require.True(t, found)
		assert.Equal(t, written.GetResourceVersion(), read.GetResourceVersion())
	}
}

func TestWaitForSync_Forbidden(t *testing.T) {
	secrets := resourceAs(t, "limited", "secrets").Namespace("default")
	c := cache.New(secrets, nil)
	run(t, c)
	err := c.WaitForSync(t.Context())
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestCache_InternsEqualMaps(t *testing.T) {
	configMaps := resource(t, "cm").Namespace(namespace(t))
	for i := range 5 {
		_, err := configMaps.Create(t.Context(), configMap(fmt.Sprint("alike-", i), "the same"), nil)
		require.NoError(t, err)
	}
	held := func(opts *cache.Options[object]) (maps int) {
		c := cache.New(configMaps, opts)
		run(t, c)
		require.NoError(t, c.WaitForSync(t.Context()))
		places := map[uintptr]bool{}
		for _, obj := range c.List("", nil) {
			if strings.HasPrefix(obj.GetName(), "alike-") {
				assert.Subset(t, obj.Object["data"], map[string]any{"v0": "the same"})
				places[reflect.ValueOf(obj.Object["data"]).Pointer()] = true
			}
		}
		return len(places)
	}
	shared := held(nil)
	for attempt := 0; shared != 2 && attempt < 3; attempt++ { // two texts may share a slot of the table, whose seed each cache draws
		shared = held(nil)
	}
	assert.Equal(t, 2, shared, "the first has its own, before it is known that it comes again")
	assert.Equal(t, 2, held(&cache.Options[object]{Transform: func(obj *object) *object {
		if data, isMap := obj.Object["data"].(map[string]any); isMap && strings.HasPrefix(obj.GetName(), "alike-") {
			assert.NotContains(t, data, "seen", "the map of another object")
			data["seen"] = "true"
		}
		return obj
	}}))
}
